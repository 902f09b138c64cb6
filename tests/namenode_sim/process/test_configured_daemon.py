"""Settings take effect in a running NameNode; unsafe ones keep each daemon from starting."""

import asyncio
import sys
from pathlib import Path

import pytest

from ha.conf.configuration import load_configuration
from ha.conf.errors import ConfigurationError
from ha.rpc.client import RpcConnection
from ha.rpc.errors import RemoteFault, RpcError
from ha.rpc.java_names import CLIENT_PROTOCOL
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import FsPermissionProto
from journal.model import TxId
from namenode_sim.edits.ops import StartLogSegment
from namenode_sim.edits.segment_file import named_range
from namenode_sim.image.codecs import GZIP_CODEC
from namenode_sim.image.facts import image_facts
from namenode_sim.startup.identity import checked_volumes, storage_settings
from namenode_sim.storage.storage import open_name_dirs
from tests.namenode_sim.startup.startup_world import KEYS, in_use, write_site
from tests.spark.service.service_world import ServiceWorld, service_world

SECONDS = 10.0
DENIED = "org.apache.hadoop.security.AccessControlException"
TOO_LONG = "org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException"


async def mkdirs(at: ServiceWorld, path: str, user: str) -> None:
    rpc = at.cluster.namenodes[0].rpc
    client = await RpcConnection.open(
        rpc.host, rpc.port, protocol=CLIENT_PROTOCOL, user=user, deadline_seconds=SECONDS
    )
    request = calls.MkdirsRequestProto(
        src=path, masked=FsPermissionProto(perm=0o755), createParent=True
    )
    try:
        await client.call("mkdirs", request, calls.MkdirsResponseProto, deadline_seconds=SECONDS)
    finally:
        await client.close()


async def test_permissions_are_switched_off_and_limits_are_set_by_their_keys(
    tmp_path: Path,
) -> None:
    (tmp_path / "strict").mkdir()
    async with service_world(tmp_path / "strict") as at:
        with pytest.raises(RemoteFault) as refusal:
            await mkdirs(at, "/mine", "mallory")
        assert refusal.value.java_class == DENIED
    (tmp_path / "open").mkdir()
    keys = {
        "dfs.permissions.enabled": "false",
        "dfs.namenode.fs-limits.max-component-length": "4",
        "dfs.image.compress": "true",
        "dfs.image.compression.codec": "org.apache.hadoop.io.compress.GzipCodec",
    }
    async with service_world(tmp_path / "open", **keys) as at:
        await mkdirs(at, "/mine", "mallory")
        with pytest.raises(RemoteFault) as refusal:
            await mkdirs(at, "/mine/and-yours", "mallory")
        assert refusal.value.java_class == TOO_LONG
        assert refusal.value.message.splitlines()[0] == (
            "The maximum path component name limit of and-yours in directory /mine is exceeded: "
            "limit=4 length=9"
        )


async def test_a_request_may_be_so_long(tmp_path: Path) -> None:
    async with service_world(tmp_path, **{"ipc.maximum.data.length": "2000"}) as at:
        await at.mkdirs("/" + "/".join(["x" * 200] * 5))
        with pytest.raises(RpcError):
            await at.mkdirs("/" + "/".join(["x" * 200] * 15))


async def test_a_long_segment_is_ended_before_its_time(tmp_path: Path) -> None:
    keys = {
        "dfs.namenode.edit.log.autoroll.check.interval.ms": "50",
        "dfs.namenode.edit.log.autoroll.multiplier.threshold": "0.5",
    }
    async with service_world(tmp_path, **keys) as at:  # dfs.namenode.checkpoint.txns is 6
        current = tmp_path / "journal/jn0/ns1/current"

        def segments() -> int:
            return sum(named_range(path.name) is not None for path in current.iterdir())

        await at.mkdirs("/short")
        before = segments()
        await at.mkdirs("/a", "/b", "/c")
        async with asyncio.timeout(SECONDS):
            while segments() == before:
                await asyncio.sleep(0.02)


SAVED: dict[tuple[str, ...], tuple[str, bool]] = {
    (): ("", False),
    ("dfs.image.compress=true",): ("org.apache.hadoop.io.compress.DefaultCodec", False),
    ("dfs.image.compress=true", f"dfs.image.compression.codec={GZIP_CODEC}"): (GZIP_CODEC, False),
    ("dfs.image.parallel.load=true",): ("", False),
    ("dfs.image.parallel.load=true", "dfs.image.parallel.inode.threshold=1"): ("", True),
}


@pytest.mark.parametrize("overrides", SAVED)
def test_an_image_is_saved_as_the_configuration_says(
    tmp_path: Path, overrides: tuple[str, ...]
) -> None:
    write_site(tmp_path / "conf", KEYS)
    conf = load_configuration(tmp_path / "conf", overrides)
    name_dir = tmp_path / "name"
    in_use(name_dir)
    storage = open_name_dirs([name_dir], storage_settings(conf))
    try:
        namespace = storage.load()
        namespace.apply(TxId(1), StartLogSegment())
        facts = image_facts(storage.save(namespace))
    finally:
        storage.close()
    assert (facts.codec, facts.sub_sections > 0) == SAVED[overrides]


def test_a_codec_that_is_none_and_a_volume_elsewhere_are_refused(tmp_path: Path) -> None:
    write_site(tmp_path / "conf", KEYS)
    wrong = ("dfs.image.compress=true", "dfs.image.compression.codec=a.Codec")
    with pytest.raises(ConfigurationError, match=r"dfs\.image\.compression\.codec: .*a\.Codec"):
        storage_settings(load_configuration(tmp_path / "conf", wrong))
    volumes = ("dfs.namenode.resource.checked.volumes=/one,file:///two",)
    found = checked_volumes(load_configuration(tmp_path / "conf", volumes))
    assert found == [Path("/one"), Path("/two")]
    away = ("dfs.namenode.resource.checked.volumes=s3://three",)
    with pytest.raises(ConfigurationError, match=r"checked\.volumes: .*not a local directory"):
        checked_volumes(load_configuration(tmp_path / "conf", away))


@pytest.mark.parametrize(
    "command", [["namenode"], ["journalnode"], ["zkfc"], ["checkpoint", "run"]]
)
async def test_no_daemon_starts_with_an_authentication_that_it_does_not_know(
    tmp_path: Path, command: list[str]
) -> None:
    name = "hadoop.security.authentication"
    site = {
        **KEYS,
        "dfs.namenode.name.dir": str(tmp_path / "name"),
        "dfs.namenode.shared.edits.dir": "qjournal://127.0.0.1:1/ns1",
        "dfs.journalnode.edits.dir": str(tmp_path / "journal"),
        "dfs.ha.automatic-failover.enabled": "true",
        "ha.zookeeper.quorum": "127.0.0.1:1",
        name: "token",
    }
    write_site(tmp_path / "conf", site)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ha.cli.main", *command, "--conf-dir", str(tmp_path / "conf")),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, told = await process.communicate()
    assert process.returncode == 78
    last = told.decode().splitlines()[-1]
    assert f"hdfs-site.xml line 1: {name} is token, but nnha knows simple and kerberos" in last
    assert f"The {command[0]} does not start. " in last
    assert not (tmp_path / "name").exists()
    assert not (tmp_path / "journal").exists()


async def test_the_group_of_superusers_and_who_is_in_it_are_configured(tmp_path: Path) -> None:
    keys = {
        "dfs.permissions.superusergroup": "blue",
        "hadoop.user.group.static.mapping.overrides": "alice=blue;mallory=red",
    }
    async with service_world(tmp_path, **keys) as at:
        await mkdirs(at, "/mine", "alice")
        with pytest.raises(RemoteFault) as refusal:
            await mkdirs(at, "/yours", "mallory")
        assert refusal.value.java_class == DENIED
