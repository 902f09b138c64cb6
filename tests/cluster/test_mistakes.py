"""The usual mistakes of operators: each with its exit code, and the remedy in the first lines."""

import asyncio
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from deploy.local.cluster.cluster import Cluster, open_cluster
from ha.conf.own_user import HADOOP_USER_NAME
from ha.security.caller import Role
from ha.security.certificates import now
from tests.ha.cli.nnha_run import Told, nnha
from tests.ha.security.authority import Authority
from tests.needs import MOUNT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

FIRST_LINES: Final = 3
SECONDS: Final = 60.0
RPC, HTTP, NAME = (
    f"dfs.namenode.{part}.ns1.nn1" for part in ("rpc-address", "http-address", "name.dir")
)
NOWHERE: Final = {"ha.zookeeper.quorum": "nozk.invalid:2181"}
OWN: Final = {"dfs.ha.namenode.id": "nn1"}
FREE: Final = {**OWN, RPC: "127.0.0.1:0", HTTP: "127.0.0.1:0"}
"""A second NameNode of the same id that does not stumble over the first one's ports."""
COPY: Final = {NAME: "{spoilt}/copy"}
TLS: Final = "nnha.security.tls.dir"
KEYS: Final = {
    "dfs.heartbeat.interval": "1s",
    "dfs.namenode.stale.datanode.interval": "3s",
    "dfs.ha.log-roll.period": "1h",
}
"""A frozen DataNode is silent soon, and an active without a quorum writes nothing."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """A command line, the keys that are wrong, and what must come of it."""

    words: str
    code: int
    said: Sequence[str]
    keys: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    """In whose name the command asks."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("mistakes")
    with open_cluster(folder, datanodes=1, more_keys=KEYS) as local:
        local.up()
        active = local.wait_for_active()
        spoil(local)
        yield local
        assert local.wait_for_active() == active
        conf = str(local.conf_dir)
        done = asyncio.run(nnha("journal", "verify", "--deep", "--conf-dir", conf))
        assert done.code == 0, done.out


def spoil(cluster: Cluster) -> None:
    """Lay out copies of folders, and configurations with an error in them."""
    folder, left_out = spoilt(cluster), shutil.ignore_patterns("in_use.lock")
    shutil.copytree(cluster.layout.name_dir("nn1"), folder / "of-others", ignore=left_out)
    shutil.copytree(cluster.layout.name_dir("nn1"), folder / "copy", ignore=left_out)
    version = folder / "of-others/current/VERSION"
    version.write_text(version.read_text().replace("clusterID=", "clusterID=CID-other-"))
    shutil.copytree(cluster.layout.data_dir("dn1"), folder / "copied", ignore=left_out)
    signed = {"ended": timedelta(days=-9), "early": timedelta(hours=1, minutes=5)}
    for name, at in signed.items():
        Authority(folder).issue(Role.ADMIN, "ann", at=now() + at, folder=f"{name}/admin")
    site = (cluster.conf_dir / "hdfs-site.xml").read_text()
    for name, text in {
        "no-xml": site.replace("</property>", "", 1).replace("<property>", "<", 1),
        "our-key": site.replace("nnha.web.url", "nnha.web.urk"),
        "value": site.replace("<value>1s</value>", "<value>1 sec</value>"),
    }.items():
        (folder / name).mkdir()
        (folder / name / "hdfs-site.xml").write_text(text)


def spoilt(cluster: Cluster) -> Path:
    return cluster.layout.directory / "spoilt"


MISTAKES: Final = {
    "an address of another host": Mistake(
        "namenode", 78, ["Cannot assign requested address", f"correct {RPC[:-8]}"],
        {**FREE, **COPY, RPC: "192.0.2.1:8020", "nnha.security.mode": "insecure-i-know"},
    ),
    "an address that other hosts reach": Mistake(
        "namenode", 78, ["nothing proves who calls", "nnha security init"],
        {**FREE, RPC: "192.0.2.1:8020"},
    ),
    "a name that does not resolve": Mistake(
        "namenode", 1, ["does not resolve here", "/etc/hosts"],
        {**FREE, **COPY, RPC: "nohost.invalid:8020"},
    ),
    "ZooKeeper's name does not resolve": Mistake(
        "history", 6, ["nozk.invalid does not resolve", "check ha.zookeeper.quorum"], NOWHERE
    ),
    "ZooKeeper's port is closed": Mistake(
        "status --check", 8, ["ZooKeeper", "→ nnha"], {"ha.zookeeper.quorum": "127.0.0.1:1"}
    ),
    "a NameNode's port is taken": Mistake(
        "namenode", 1, ["Address already in use", "give dfs.namenode.rpc-address another port"],
        {**OWN, **COPY},
    ),
    "a second ZKFC of one id": Mistake(
        "zkfc", 1, ["Address already in use", "give nnha.zkfc.http-address another port"], OWN
    ),
    "a second NameNode on one folder": Mistake(
        "namenode", 1, ["is locked by", "Stop that process"], FREE
    ),
    "an id that there is not, NameNode": Mistake(
        "namenode", 78, ["lists nn1, nn2"], {"dfs.ha.namenode.id": "nn7"}
    ),
    "an id that there is not, ZKFC": Mistake(
        "zkfc", 78, ["lists nn1, nn2"], {"dfs.ha.namenode.id": "nn7"}
    ),
    "drain of an id that there is not": Mistake("drain nn7", 3, ["no NameNode nn7", "nn1, nn2"]),
    "switchover to such an id": Mistake("switchover nn7 --yes", 3, ["no NameNode nn7"]),
    "fence test of such an id": Mistake("fence test nn7", 2, ["lists nn1, nn2"]),
    "a key of such an id": Mistake(
        "config explain dfs.namenode.rpc-address -nn nn7", 3, ["lists nn1, nn2"]
    ),
    "a nameservice that there is not": Mistake("journal status -ns ns7", 2, ["lists only ns1"]),
    "a drain without a reason": Mistake("drain nn1 --for 1m", 2, ["--reason TEXT"]),
    "a command that there is not": Mistake("undrain nn1", 2, ["Did you mean drain?"]),
    "a NameNode's folder of another cluster": Mistake(
        "namenode", 78, ["belongs to cluster", "Correct dfs.namenode.shared.edits.dir"],
        {**FREE, NAME: "{spoilt}/of-others"},
    ),
    "a DataNode's folder that was copied": Mistake(
        "datanode", 78, ["was copied", "incarnation"],
        {
            "dfs.datanode.data.dir": "{spoilt}/copied", "dfs.datanode.address": "127.0.0.1:0",
            "dfs.datanode.http.address": "127.0.0.1:0", "dfs.datanode.ipc.address": "127.0.0.1:0",
        },
    ),
    "broken XML, command": Mistake("status {no-xml}", 2, ["not well-formed", "Correct the file"]),
    "broken XML, daemon": Mistake("datanode {no-xml}", 78, ["not well-formed", "Correct the file"]),
    "a folder that is not there": Mistake("status {nothere}", 2, ["holds neither", "--conf-dir"]),
    "formatting twice": Mistake(
        "namenode --format --non-interactive", 1, ["nothing was changed", "give --force"], OWN
    ),
    "formatting what is served": Mistake(
        "namenode --format --force", 1, ["is locked by", "Stop that process"], OWN
    ),
    "formatting anew under the id of another": Mistake(
        "namenode --format --force", 1, ["is active", "--bootstrap-standby"],
        {"dfs.ha.namenode.id": "nn2", NAME.replace("nn1", "nn2"): "{spoilt}/fresh"},
    ),
    "the journal begun anew from a copy": Mistake(
        "namenode --initialize-shared-edits --force", 1, ["is active", "nothing was changed"],
        {**OWN, **COPY},
    ),
    "formatting anew in a running cluster": Mistake(
        "namenode --format --force", 1, ["is active", "--bootstrap-standby"],
        {**OWN, NAME: "{spoilt}/fresh"},
    ),
    "a start without an image": Mistake(
        "namenode", 78, ["--format", "--bootstrap-standby"], {**FREE, NAME: "{spoilt}/none"}
    ),
    "a misspelt key, in CI": Mistake(
        "config validate --strict", 8, ["Did you mean dfs.ha.fencing.methods?"],
        {"dfs.ha.fencing.method": "sshfence"},
    ),
    "a misspelt key of ours": Mistake(
        "config validate {our-key}", 2, ["Did you mean nnha.web.url"]
    ),
    "the same, daemon": Mistake("journalnode {our-key}", 78, ["Did you mean nnha.web.url"]),
    "a bad value": Mistake("config validate {value}", 8, ["must be a duration, for instance 10s"]),
    "the same, daemon of the key": Mistake("datanode {value}", 78, ["must be a duration"]),
    **{
        f"fencing by {method or 'nothing'}": Mistake(
            "zkfc", 4, ["Fencing is not usable", remedy],
            {**OWN, "dfs.ha.fencing.methods": method},
        )
        for method, remedy in {
            "sshfense": "use sshfence", "shell(foo": "Write one method a line",
            "sshfence(hdfs:abc)": "Write sshfence", "": "set it to one method",
        }.items()
    },
    "the own certificate has ended": Mistake(
        "status", 2, ["nnha://c1/admin/ann", "ended at", "nnha security rotate"],
        {TLS: "{spoilt}/ended"},
    ),
    "the own clock is an hour behind": Mistake(
        "switchover --yes", 2, ["this machine's clock says", "valid from", "set this"],
        {TLS: "{spoilt}/early"},
    ),
    "credentials that this user may not read": Mistake(
        "status", 2, ["copied", "cannot read the ZooKeeper credentials"],
        {"ha.zookeeper.auth": "@{spoilt}/copied"},  # root reads every file, but no folder as one
    ),
    "an ordinary user hands over": Mistake(
        "switchover --yes", 7, ["NOT AUTHORISED", "dfs.cluster.administrators"], user="ann"
    ),
    "an ordinary user enters safe mode": Mistake(
        "safemode enter --yes", 7, ["NOT AUTHORISED", "Superuser privilege is required"],
        user="ann",
    ),
    "a fencing program that is not there": Mistake(
        "config validate", 8, ["no such program", "on every NameNode host"],
        {"dfs.ha.fencing.methods": "shell(/no/such)"},
    ),
}  # fmt: skip
DAEMONS: Final = ("namenode", "datanode", "journalnode", "zkfc")


@pytest.mark.parametrize("case", MISTAKES)
async def test_a_mistake_is_told_with_its_remedy_first(
    cluster: Cluster, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = MISTAKES[case]
    if one.user:
        monkeypatch.setenv(HADOOP_USER_NAME, one.user)
    folder = spoilt(cluster)
    words = [word for word in one.words.split() if not word.startswith("{")]
    (conf,) = [word[1:-1] for word in one.words.split() if word.startswith("{")] or [""]
    words += ["--conf-dir", str(folder / conf if conf else cluster.conf_dir)]
    for key, value in one.keys.items():
        words += ["-D", f"{key}={value.replace('{spoilt}', str(folder))}"]
    if words[0] in DAEMONS:
        done = await asyncio.to_thread(
            subprocess.run, cluster.command(*words), capture_output=True, text=True,
            timeout=SECONDS, check=False,
        )  # fmt: skip
        code, said = done.returncode, done.stdout + done.stderr
    else:
        told = await nnha(*words)
        code, said = told.code, told.out + told.err
    first = "\n".join(said.splitlines()[:FIRST_LINES])
    assert code == one.code, said
    assert "Traceback" not in said
    for text in one.said:
        assert text in first


FROZEN: Final = {
    "the active": (("{active}",), ["NameNode {active}: no answer in"]),
    "the standby": (("{standby}",), ["NameNode {standby}: no answer in"]),
    "the active's controller": (("zkfc-{active}",), ["ZKFC of {active}: no answer in"]),
    "a JournalNode": (("jn3",), ["JournalNode", "no answer in"]),
    "two JournalNodes": (("jn2", "jn3"), ["JournalNode", "no answer in"]),
}


@pytest.mark.parametrize("case", FROZEN)
async def test_a_frozen_process_is_named_first_and_never_called_dead(
    cluster: Cluster, case: str
) -> None:
    active = cluster.wait_for_active()
    standby = "nn2" if active == "nn1" else "nn1"
    parts, wanted = FROZEN[case]
    frozen = [cluster.process(one.format(active=active, standby=standby)) for one in parts]
    for one in frozen:
        one.freeze()
    try:
        told = await nnha("status", "--check", "--conf-dir", str(cluster.conf_dir))
    finally:
        for one in frozen:
            one.thaw()
    first = "\n".join(told.out.splitlines()[:FIRST_LINES])
    assert told.code == 8
    assert "DOWN" not in told.out
    for text in [*wanted, "→ nnha doctor"]:
        assert text.format(active=active, standby=standby) in first


async def test_a_frozen_datanode_is_called_silent_and_not_dead(cluster: Cluster) -> None:
    datanode = cluster.process("dn1")
    datanode.freeze()
    try:
        told = await seen(cluster, "is silent")
    finally:
        datanode.thaw()
    assert told.code == 8
    assert "→ nnha datanodes" in next(line for line in told.out.splitlines() if "silent" in line)
    assert "dead" not in told.out
    await seen(cluster, "DataNodes 1 live ")


async def seen(cluster: Cluster, text: str) -> Told:
    """Return the first status that says so, within a minute."""
    async with asyncio.timeout(SECONDS):
        while True:
            told = await nnha("status", "--check", "--conf-dir", str(cluster.conf_dir))
            if text in told.out:
                return told


async def test_two_dead_journalnodes_are_a_lost_quorum(cluster: Cluster) -> None:
    for name in ("jn2", "jn3"):
        cluster.kill(name)
    conf = ("--conf-dir", str(cluster.conf_dir))
    status = await nnha("status", "--check", *conf)
    journal = await nnha("journal", "status", *conf)
    for name in ("jn2", "jn3"):
        cluster.start(name)
    assert (status.code, journal.code) == (8, 6)
    first = "\n".join(status.out.splitlines()[:FIRST_LINES])
    for text in ("failover: BLOCKED", "journal has no quorum", "→ nnha doctor"):
        assert text in first
    assert status.out.count("not running (connection refused)") >= 2
    assert "the quorum is lost" in journal.out
    await seen(cluster, "healthy")


@MOUNT.mark
def test_a_full_disk_is_named_and_may_pass(cluster: Cluster) -> None:
    folder = spoilt(cluster) / "full"
    folder.mkdir()
    keys = {
        "dfs.journalnode.edits.dir": str(folder / "edits"),
        "dfs.journalnode.rpc-address": "127.0.0.1:0",
        "dfs.journalnode.http-address": "127.0.0.1:0",
    }
    options = [word for key, value in keys.items() for word in ("-D", f"{key}={value}")]
    fill = (
        'mount -t tmpfs -o size=8m tmpfs "$0" && cp -r "$1" "$0/edits" && shift && '
        '{ head -c 64M /dev/zero >"$0/x" 2>/dev/null; exec "$@"; }'
    )
    edits = str(cluster.layout.edits_dir("jn1"))
    done = subprocess.run(
        [
            "unshare", "-m", "sh", "-c", fill, str(folder), edits,
            *cluster.command("journalnode", *options),
        ],
        capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "No space left on device" in "".join(done.stderr.splitlines()[:FIRST_LINES])
