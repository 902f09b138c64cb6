"""Each key of the file system, from the configuration to what a client sees of it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from google.protobuf.message import Message

from ha.conf.configuration import load_configuration
from ha.conf.errors import ConfigurationError
from ha.rpc.errors import RemoteFault
from namenode_sim.client_protocol.words.model import Settings, TokenRules
from namenode_sim.edits.ops import AddBlock
from namenode_sim.edits.values import Block
from namenode_sim.process.client_settings import client_settings
from namenode_sim.process.user_groups import SystemGroups
from tests.namenode_sim.client_protocol.namenode_in_memory import Served, serve

DENIED = "org.apache.hadoop.security.AccessControlException"
IO = "java.io.IOException"
LIMIT = "org.apache.hadoop.hdfs.protocol.FSLimitException$"
ILLEGAL = "org.apache.hadoop.HadoopIllegalArgumentException"
SNAPSHOT = "org.apache.hadoop.hdfs.protocol.SnapshotException"
ACL = "org.apache.hadoop.hdfs.protocol.AclException"


def configured(folder: Path, *overrides: str) -> Settings:
    (folder / "core-site.xml").write_text("<configuration/>")
    return client_settings(load_configuration(folder, overrides, environment={}))


def test_what_is_not_configured_has_hadoops_default(tmp_path: Path) -> None:
    assert configured(tmp_path) == Settings()


FIELDS: dict[str, tuple[str, object]] = {
    "dfs.blocksize=64m": ("block_size", 64 << 20),
    "dfs.bytes-per-checksum=1024": ("bytes_per_checksum", 1024),
    "dfs.checksum.type=CRC32": ("checksum_type", "CRC32"),
    "dfs.client-write-packet-size=4096": ("write_packet_size", 4096),
    "dfs.replication=2": ("replication", 2),
    "io.file.buffer.size=131072": ("file_buffer_size", 131072),
    "fs.trash.interval=60": ("trash_interval_minutes", 60),
    "dfs.ls.limit=7": ("listing_limit", 7),
    "dfs.ls.limit=0": ("listing_limit", 1000),
    "dfs.batched.ls.limit=7": ("batched_listing_limit", 7),
    "dfs.namenode.replication.min=2": ("min_replication", 2),
    "dfs.replication.max=9": ("max_replication", 9),
    "dfs.namenode.fs-limits.min-block-size=4k": ("min_block_size", 4096),
    "dfs.namenode.fs-limits.max-blocks-per-file=3": ("max_blocks", 3),
    "dfs.namenode.fs-limits.max-component-length=0": ("max_component_bytes", 0),
    "dfs.namenode.fs-limits.max-directory-items=3": ("max_directory_items", 3),
    "dfs.namenode.fs-limits.max-xattrs-per-inode=1": ("max_xattrs", 1),
    "dfs.namenode.fs-limits.max-xattr-size=9": ("max_xattr_bytes", 9),
    "dfs.namenode.accesstime.precision=0": ("access_time_precision_ms", 0),
    "dfs.namenode.lease-hard-limit-sec=30": ("hard_lease_seconds", 30.0),
    "dfs.heartbeat.interval=1s": ("block_recovery_seconds", 30.0),
    "dfs.permissions.enabled=false": ("permissions_enabled", False),
    "dfs.permissions=false": ("permissions_enabled", False),
    "dfs.permissions.allow.owner.set.quota=true": ("owners_set_quotas", True),
    "dfs.namenode.xattrs.enabled=false": ("xattrs_enabled", False),
    "dfs.namenode.acls.enabled=false": ("acls_enabled", False),
    "dfs.namenode.posix.acl.inheritance.enabled=false": ("posix_acl_inheritance", False),
    "dfs.namenode.snapshot.max.limit=1": ("max_snapshots_of_one", 1),
    "dfs.namenode.snapshot.filesystem.limit=1": ("max_snapshots", 1),
    "fs.protected.directories=/a/, //b//c": ("protected", frozenset({"/a", "/b/c"})),
    "dfs.protected.subdirectories.enable=true": ("protected_below", True),
    "dfs.namenode.delegation.token.always-use=true": ("tokens", TokenRules(issued=True)),
    "dfs.namenode.delegation.token.max-lifetime=5s": ("tokens", TokenRules(lifetime_ms=5000)),
    "dfs.namenode.delegation.token.renew-interval=7": ("tokens", TokenRules(renewal_ms=7)),
    "dfs.namenode.delegation.key.update-interval=1m": ("tokens", TokenRules(key_ms=60_000)),
    "dfs.encrypt.data.transfer=true": ("data_algorithm", ""),
}


@pytest.mark.parametrize("override", FIELDS)
def test_a_key_sets_its_field_and_no_other(tmp_path: Path, override: str) -> None:
    name, value = FIELDS[override]
    assert configured(tmp_path, override) == replace(Settings(), **{name: value})  # type: ignore[arg-type]


def test_every_field_is_in_the_table() -> None:
    assert {name for name, _ in FIELDS.values()} == {field.name for field in fields(Settings)}


REFUSED = {
    "dfs.replication.max=513": "at most 512",
    "dfs.namenode.fs-limits.max-directory-items=0": "at least 1",
    "dfs.namenode.fs-limits.max-directory-items=6400001": "at most 6400000",
    "dfs.namenode.fs-limits.max-xattr-size=0": "at least 1",
    "dfs.namenode.fs-limits.max-xattr-size=32769": "at most 32768",
    "dfs.namenode.delegation.token.max-lifetime=0": "longer than zero",
    "dfs.checksum.type=MD5": "must be CRC32C or CRC32 or NULL",
    "fs.protected.directories=user": "not an absolute path",
}


@pytest.mark.parametrize("override", REFUSED)
def test_what_cannot_be_is_refused(tmp_path: Path, override: str) -> None:
    with pytest.raises(ConfigurationError, match=REFUSED[override]) as refusal:
        configured(tmp_path, override)
    assert override.partition("=")[0] in str(refusal.value)


def test_encryption_takes_the_keys_of_block_tokens(tmp_path: Path) -> None:
    encrypts, tokens = "dfs.encrypt.data.transfer=true", "dfs.block.access.token.enable="
    found = configured(tmp_path, encrypts, f"{tokens}true", f"{encrypts[:25]}.algorithm=rc4")
    assert found.data_algorithm == "rc4"
    with pytest.raises(ConfigurationError, match=r"is true, but there are no keys to encrypt with"):
        configured(tmp_path, encrypts, f"{tokens}false")
    with pytest.raises(ConfigurationError, match="must be 3des or rc4"):
        configured(tmp_path, encrypts, f"{encrypts[:25]}.algorithm=des")


def test_limits_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"is 4, more than dfs\.replication\.max, which"):
        configured(tmp_path, "dfs.namenode.replication.min=4", "dfs.replication.max=3")


Act: TypeAlias = Callable[[Served], Awaitable[object]]
XATTR: dict[str, Any] = {"namespace": "USER", "name": "n", "value": b"12345678"}


@dataclass(frozen=True)
class Case:
    """A call that a setting refuses and that its default lets through."""

    override: str
    act: Act
    java_class: str
    message: str


def set_xattr(name: str) -> Act:
    return lambda s: s.call("setXAttr", src="/d", xAttr={**XATTR, "name": name}, flag=1)


async def second_xattr(served: Served) -> None:
    await set_xattr("n")(served)
    await set_xattr("m")(served)


async def second_snapshot(served: Served) -> None:
    await served.take_snapshot("/d", "s1")
    await served.call("createSnapshot", snapshotRoot="/d", snapshotName="s2")


async def add_block(served: Served) -> Message:
    await served.create("/open")
    served.log_and_apply(AddBlock("/open", None, Block(2**30 + 1, 0, 1001)))
    last = {"poolId": served.cluster.pool, "blockId": 2**30 + 1, "generationStamp": 1001}
    return await served.call("addBlock", src="/open", clientName="writer", previous=last)


CASES = {
    "replication below": Case(
        "dfs.namenode.replication.min=2",
        lambda s: s.create("/n", replication=1),
        IO,
        "Requested replication factor of 1 is less than the required minimum of 2 for /n, "
        "clientName=127.0.0.1",
    ),
    "replication above": Case(
        "dfs.replication.max=2",
        lambda s: s.create("/n", replication=3),
        IO,
        "Requested replication factor of 3 exceeds maximum of 2 for /n, clientName=127.0.0.1",
    ),
    "block size": Case(
        "dfs.namenode.fs-limits.min-block-size=256m",
        lambda s: s.create("/n"),
        IO,
        "Specified block size is less than configured minimum value "
        "(dfs.namenode.fs-limits.min-block-size): 134217728 < 268435456",
    ),
    "name": Case(
        "dfs.namenode.fs-limits.max-component-length=3",
        lambda s: s.mkdirs("/d/four"),
        LIMIT + "PathComponentTooLongException",
        "The maximum path component name limit of four in directory /d is exceeded: limit=3 "
        "length=4",
    ),
    "directory": Case(
        "dfs.namenode.fs-limits.max-directory-items=2",
        lambda s: s.mkdirs("/n"),
        LIMIT + "MaxDirectoryItemsExceededException",
        "The directory item limit of / is exceeded: limit=2 items=2",
    ),
    "xattrs": Case(
        "dfs.namenode.fs-limits.max-xattrs-per-inode=1",
        second_xattr,
        IO,
        "Cannot add additional XAttr to inode, would exceed limit of 1",
    ),
    "xattr": Case(
        "dfs.namenode.fs-limits.max-xattr-size=8",
        set_xattr("n"),
        ILLEGAL,
        "The XAttr is too big. The maximum combined size of the name and value is 8, but the total "
        "size is 9",
    ),
    "acls": Case(
        "dfs.namenode.acls.enabled=false",
        lambda s: s.call("getAclStatus", src="/d"),
        ACL,
        "The ACL operation has been rejected.  Support for ACLs has been disabled by setting "
        "dfs.namenode.acls.enabled to false.",
    ),
    "snapshots of one": Case(
        "dfs.namenode.snapshot.max.limit=1",
        second_snapshot,
        SNAPSHOT,
        "Failed to create snapshot: there are already 1 snapshot(s) and the per directory snapshot "
        "limit is 1",
    ),
    "snapshots of all": Case(
        "dfs.namenode.snapshot.filesystem.limit=1",
        second_snapshot,
        SNAPSHOT,
        "Failed to create snapshot: there are already 1 snapshot(s) and the file system snapshot "
        "limit is 1",
    ),
    "protected": Case(
        "fs.protected.directories=/d",
        lambda s: s.call("delete", src="/d", recursive=True),
        DENIED,
        "Cannot delete/rename non-empty protected directory /d",
    ),
    "protected below": Case(
        "fs.protected.directories=/d/sub",
        lambda s: s.call("rename2", src="/d", dst="/n", overwriteDest=False),
        DENIED,
        "Cannot delete/rename non-empty protected subdirectory /d/sub",
    ),
    "protected, the old rename": Case(
        "fs.protected.directories=/d",
        lambda s: s.call("rename", src="/d", dst="/n"),
        DENIED,
        "Cannot delete/rename non-empty protected directory /d",
    ),
}


async def prepared(settings: Settings) -> Served:
    served = serve()
    for path in ("/d/sub/below", "/o"):
        await served.mkdirs(path)
    await served.touch("/d/f", blockSize=1 << 28)
    served.face.settings = settings
    return served


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_a_limit_refuses_with_hadoops_words(tmp_path: Path, case: Case) -> None:
    await case.act(await prepared(Settings()))
    served = await prepared(configured(tmp_path, case.override))
    with pytest.raises(RemoteFault) as refusal:
        await case.act(served)
    assert (refusal.value.java_class, refusal.value.message) == (case.java_class, case.message)


async def test_a_file_gets_no_more_blocks_than_it_may_have(tmp_path: Path) -> None:
    for override, said in {
        "dfs.namenode.fs-limits.max-blocks-per-file=1": "File has reached the limit on maximum "
        "number of blocks (dfs.namenode.fs-limits.max-blocks-per-file): 1 >= 1",
        "dfs.namenode.fs-limits.max-blocks-per-file=2": "could only be written to 0 of the 1",
    }.items():
        with pytest.raises(RemoteFault) as refusal:
            await add_block(await prepared(configured(tmp_path, override)))
        assert said in refusal.value.message


async def test_without_a_limit_a_name_is_as_long_as_it_likes(tmp_path: Path) -> None:
    settings = configured(tmp_path, "dfs.namenode.fs-limits.max-component-length=0")
    assert await (await prepared(settings)).mkdirs("/" + "x" * 300)


OFF = Settings(permissions_enabled=False)

LET_THROUGH: dict[str, Act] = {
    "mkdirs": lambda s: s.mkdirs("/d/new", user="bob"),
    "create": lambda s: s.create("/d/new", user="bob"),
    "delete": lambda s: s.call("delete", src="/d", recursive=True, user="bob"),
    "rename": lambda s: s.call("rename2", src="/d", dst="/n", overwriteDest=False, user="bob"),
    "list": lambda s: s.call(
        "getListing", src="/d", startAfter=b"", needLocation=False, user="bob"
    ),
    "count": lambda s: s.call("getContentSummary", path="/d", user="bob"),
    "access": lambda s: s.call("checkAccess", path="/d", mode="PERM_ALL", user="bob"),
    "xattr": lambda s: s.call("setXAttr", src="/d", xAttr=XATTR, flag=1, user="bob"),
    "quota": lambda s: s.call(
        "setQuota", path="/d", namespaceQuota=99, storagespaceQuota=2**64 - 1, user="bob"
    ),
    "allow snapshots": lambda s: s.call("allowSnapshot", snapshotRoot="/d", user="bob"),
    "times": lambda s: s.call("setTimes", src="/d", mtime=1, atime=1, user="bob"),
}
STILL_ASKED: dict[str, Act] = {
    "chmod": lambda s: s.call("setPermission", src="/d", permission={"perm": 0o777}, user="bob"),
    "chmod below": lambda s: s.call(
        "setPermission", src="/d/f", permission={"perm": 0o777}, user="bob"
    ),
    "chown": lambda s: s.call("setOwner", src="/d", username="bob", user="bob"),
    "setfacl": lambda s: s.call("removeAcl", src="/d", user="bob"),
}


async def of_alice(settings: Settings) -> Served:
    served = serve()
    await served.mkdirs("/d", mode=0o700)
    await served.touch("/d/f")
    await served.call("setOwner", src="/d", username="alice", groupname="alice")
    served.face.settings = settings
    return served


@pytest.mark.parametrize("act", LET_THROUGH.values(), ids=LET_THROUGH.keys())
async def test_without_permissions_nobody_is_asked(act: Act) -> None:
    with pytest.raises(RemoteFault) as refusal:
        await act(await of_alice(Settings()))
    assert refusal.value.java_class == DENIED
    await act(await of_alice(OFF))


@pytest.mark.parametrize("act", STILL_ASKED.values(), ids=STILL_ASKED.keys())
async def test_changing_modes_owners_and_acls_is_always_the_owners(act: Act) -> None:
    """HdfsPermissionsGuide: chmod, chgrp, chown and setfacl always check permissions."""
    for settings in (Settings(), OFF):
        with pytest.raises(RemoteFault) as refusal:
            await act(await of_alice(settings))
        assert refusal.value.java_class == DENIED


@pytest.mark.parametrize(("posix", "mode"), [(True, 0o770), (False, 0o750)])
async def test_the_mode_below_a_default_acl(posix: bool, mode: int) -> None:
    served = serve(settings=Settings(posix_acl_inheritance=posix))
    await served.mkdirs("/d")
    default = [
        {"scope": "DEFAULT", "type": kind, "permissions": "PERM_ALL"} for kind in ("USER", "GROUP")
    ] + [{"scope": "DEFAULT", "type": "OTHER", "permissions": "NONE"}]
    await served.call("modifyAclEntries", src="/d", aclSpec=default)
    await served.mkdirs("/d/n", mode=0o755, unmasked={"perm": 0o777})
    node = served.namespace.tree.find("/d/n")
    assert node is not None
    assert node.mode == mode


async def test_some_users_groups_are_configured_and_not_asked_for() -> None:
    groups = SystemGroups({"root": frozenset({"few"}), "nobody-here": frozenset()})
    for user in ("root", "nobody-here"):
        await groups.learn(user)
    assert groups.known("root") == {"few"}
    assert groups.known("nobody-here") == frozenset()
    asked = SystemGroups()
    await asked.learn("root")
    assert "root" in asked.known("root")
