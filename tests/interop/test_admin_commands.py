"""What administrators call with Hadoop's own, unmodified programs, on a whole cluster of ours."""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from getpass import getuser
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from deploy.local.cluster.cluster import open_cluster
from deploy.local.cluster.processes import wait_until
from namenode_sim.image.files import check_digest
from tests import TESTDATA
from tests.interop.cli_cases import cases_in, failures
from tests.interop.hadoop_server import Hadoop
from tests.interop.our_cluster import (
    CACHE_ADMIN,
    DFSADMIN,
    DFSCK,
    SHELL,
    OurCluster,
    Ran,
    programs_on,
)
from tests.needs import FILES_OF_HADOOP

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

KEYS = {
    "dfs.namenode.safemode.extension": "0",
    "dfs.datanode.max.locked.memory": "64k",
    "dfs.cachereport.intervalMsec": "200",
}


@pytest.fixture(scope="module")
def ours(hadoop: Hadoop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OurCluster]:
    folder = tmp_path_factory.mktemp("admin")
    with pytest.MonkeyPatch.context() as surroundings:
        surroundings.setenv("HADOOP_LOG_DIR", str(folder))
        (folder / "racks").write_text("127.0.0.1 /hall/rack\n")
        (folder / "exclude").write_text("")
        files = {
            "net.topology.table.file.name": str(folder / "racks"),
            "dfs.hosts.exclude": str(folder / "exclude"),
        }
        with open_cluster(folder, datanodes=1, more_keys=KEYS | files) as cluster:
            cluster.up()
            with programs_on(cluster, hadoop) as made:
                yield made


def test_both_namenodes_save_their_namespaces(ours: OurCluster, tmp_path: Path) -> None:
    ours.shell("-mkdir", "-p", "/saved")
    refused = ours.run(DFSADMIN, "-saveNamespace")
    assert refused.status != 0
    assert "Safe mode should be turned ON in order to create namespace image" in refused.said
    ours.dfsadmin("-safemode", "enter")
    before = ours.images()
    assert ours.dfsadmin("-saveNamespace").count("Save namespace successful") == 2
    for name, found in ours.images().items():
        assert found[-1] != before[name][-1]
        check_digest(found[-1])
    newest = ours.images()[ours.cluster.wait_for_active()][-1]
    assert "<name>saved</name>" in ours.hadoop.print_image(newest)
    again = ours.dfsadmin("-saveNamespace", "-beforeShutdown")
    assert again.count("No extra checkpoint has been made") == 2
    ours.dfsadmin("-fetchImage", str(tmp_path))
    assert (tmp_path / newest.name).read_bytes() == newest.read_bytes()
    ours.dfsadmin("-safemode", "leave")
    ours.shell("-mkdir", "/saved/more")


def stat(ours: OurCluster, path: str) -> int:
    """Return a modification time in milliseconds since 1970."""
    return int(ours.shell("-stat", "%Y", path))


def test_snapshots_have_their_times_here_after_a_failover_and_in_java(
    ours: OurCluster, tmp_path: Path
) -> None:
    began = time.time() * 1000
    ours.shell("-mkdir", "-p", "/timed/d")
    ours.dfsadmin("-allowSnapshot", "/timed")
    for name in ("kept", "old", "gone"):
        ours.shell("-createSnapshot", "/timed", name)
    ours.shell("-renameSnapshot", "/timed", "old", "new")
    ours.shell("-deleteSnapshot", "/timed", "gone")
    paths = ("/timed/.snapshot/kept", "/timed/.snapshot/new", "/timed")
    times = {path: stat(ours, path) for path in paths}
    assert all(began - 1 <= shown <= time.time() * 1000 for shown in times.values())
    ours.dfsadmin("-rollEdits")
    segments = sorted(ours.cluster.layout.edits_dir("jn1").rglob("edits_*[0-9]-*[0-9]"))
    for segment in segments:  # more than one: the standby may have rolled the edits in between
        ours.hadoop.print_edits(segment, tmp_path / f"{segment.name}.xml")
    edits = "".join(path.read_text() for path in tmp_path.glob("*.xml"))
    assert "<EDITS_VERSION>-67</EDITS_VERSION>" in edits
    ours_only = re.findall("<SNAPSHOTROOT>/timed<.*?</RECORD>", edits, re.DOTALL)
    assert sum("<MTIME>" in edit for edit in ours_only) == 5
    java = java_from(ours, segments, tmp_path / "java")
    for name in ("kept", "new"):
        shown = times[f"/timed/.snapshot/{name}"]
        assert f"<name>{name}</name><mtime>{shown}</mtime>" in java
    ours.cluster.kill(ours.cluster.wait_for_active())
    assert {path: stat(ours, path) for path in paths} == times
    ours.cluster.heal()


def java_from(ours: OurCluster, segments: list[Path], folder: Path) -> str:
    """Let Hadoop's NameNode start from our oldest image and edits; return the image it saves."""
    current = folder / "current"
    shutil.copytree(ours.cluster.layout.name_dir("nn1") / "current", current)
    for path in (*sorted(current.glob("fsimage_*"))[2:], *current.glob("edits_*")):
        path.unlink()
    for segment in segments:
        shutil.copy(segment, current)
    ours.hadoop.save_again(folder)
    return ours.hadoop.print_image(sorted(current.glob("fsimage_" + "[0-9]" * 19))[-1])


def test_snapshot_diff_prints_what_changed(ours: OurCluster) -> None:
    ours.shell("-mkdir", "-p", "/diffed/old", "/diffed/gone")
    ours.dfsadmin("-allowSnapshot", "/diffed")
    ours.shell("-createSnapshot", "/diffed", "s1")
    ours.shell("-mv", "/diffed/old", "/diffed/new")
    ours.shell("-rmdir", "/diffed/gone")
    ours.shell("-touchz", "/diffed/came")
    ours.shell("-createSnapshot", "/diffed", "s2")
    wanted = {"M\t.", "+\t./came", "-\t./gone", "R\t./old -> ./new"}
    for later in ("s2", "."):
        said = ours.well("hdfs.tools.snapshot.SnapshotDiff", "/diffed", "s1", later)
        assert set(said.splitlines()[1:]) - {""} == wanted


@pytest.mark.row("B28")
@FILES_OF_HADOOP.mark
@pytest.mark.parametrize(("name", "every"), [
    ("testCacheAdminConf", 1), ("testXAttrConf", 2), ("testDeleteConf", 2),
    ("testAclCLIWithPosixAclInheritance", 2), ("testHDFSConf", 20),
])  # fmt: skip
def test_hadoop_s_own_cases_pass(ours: OurCluster, name: str, every: int) -> None:
    """All of a short list, whose ids count on from case to case; of the others a selection."""
    folder = TESTDATA / "upstream-cli"
    names = {"NAMENODE": "hdfs://ns1", "CLITEST_DATA": str(folder), "USERNAME": getuser()}
    cases = cases_in(folder / f"{name}.xml", names)[::every]
    # It expects one NameNode; and Hadoop would ask over its connection after these were killed.
    cases = [case for case in cases if case.description != "refreshUserToGroupsMappings"]
    assert not failures(ours, cases)


def counts(ours: OurCluster, path: str) -> list[str]:
    """Return bytes needed and cached, files needed and cached, of the one directive of a path."""
    listed = ours.well(CACHE_ADMIN, "-listDirectives", "-stats", "-path", path)
    return listed.split()[-4:]


def cached_hosts(ours: OurCluster, path: str) -> list[str]:
    """Return where a file's only block is in memory, as Hadoop's client learns it."""
    files = ours.hadoop.hadoop.fs.FileSystem.get(ours.configuration())
    (block,) = files.getFileBlockLocations(ours.hadoop.path(path), 0, 5000)
    return list(block.getCachedHosts())


@pytest.mark.row("B28")
def test_blocks_of_a_directive_are_cached_through_a_failover(
    ours: OurCluster, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(bytes(5000))
    ours.shell("-mkdir", "/hot")
    ours.shell("-put", str(tmp_path / "file"), "/hot/file")
    assert cached_hosts(ours, "/hot/file") == []
    ours.well(CACHE_ADMIN, "-addPool", "hot")
    ours.well(CACHE_ADMIN, "-addDirective", "-path", "/hot", "-pool", "hot")
    until_cached(ours, "5000")
    assert len(cached_hosts(ours, "/hot/file")) == 1
    report = ours.dfsadmin("-report")
    assert "Configured Cache Capacity: 65536" in report
    assert "Cache Used: 8192" in report
    ours.cluster.kill(ours.cluster.wait_for_active())
    until_cached(ours, "5000")
    ours.cluster.heal()
    ours.well(CACHE_ADMIN, "-removePool", "hot")
    wait_until(
        lambda: "Cache Used: 0" in ours.dfsadmin("-report"),
        what="the memory to be free",
        deadline_seconds=30,
    )


def until_cached(ours: OurCluster, size: str) -> None:
    wanted = [size, size, "1", "1"]
    wait_until(
        lambda: counts(ours, "/hot") == wanted, what="the file in memory", deadline_seconds=30
    )


def test_what_can_be_refreshed_is_refreshed(ours: OurCluster) -> None:
    said = ours.dfsadmin("-refreshUserToGroupsMappings")
    assert said.count("Refresh user to groups mapping successful") == 2
    said = ours.dfsadmin("-refreshSuperUserGroupsConfiguration")
    assert said.count("Refresh super user groups configuration successful") == 2
    refused = ours.run(DFSADMIN, "-refreshServiceAcl")
    assert "Service Level Authorization not enabled!" in refused.said


@pytest.mark.row("B21")
def test_datanodes_are_shown_on_their_racks_and_as_they_leave(ours: OurCluster) -> None:
    exclude = Path(ours.cluster.more_keys["dfs.hosts.exclude"])
    topology = ours.dfsadmin("-printTopology")
    assert "Rack: /hall/rack" in topology
    assert "In Service" in topology
    exclude.write_text("127.0.0.1 # it leaves\n")
    assert ours.dfsadmin("-refreshNodes").count("Refresh nodes successful") == 2
    assert "Decommission Status : Decommission" in ours.dfsadmin("-report")
    exclude.write_text("nowhere:x\n")
    assert "is no host or host:port" in ours.run(DFSADMIN, "-refreshNodes").said
    exclude.write_text("")
    ours.dfsadmin("-refreshNodes")
    assert "Decommission Status : Normal" in ours.dfsadmin("-report", "-live")
    for state in ("-decommissioning", "-enteringmaintenance", "-inmaintenance"):
        assert "Name: " not in ours.dfsadmin("-report", state)


def test_several_directories_are_listed_at_once(ours: OurCluster) -> None:
    for path in ("/many/a/b", "/many/a/c", "/many/d/e"):
        ours.shell("-mkdir", "-p", path)
    client = ours.hadoop.hadoop.fs.FileSystem.newInstance(ours.configuration())
    paths = ours.hadoop.gateway.jvm.java.util.ArrayList()
    for path in ("/many/a", "/many/d", "/many/none"):
        paths.add(ours.hadoop.path(path))
    found, each = [], client.batchedListStatusIterator(paths)
    while each.hasNext():
        listing = each.next()
        try:
            found += [str(one.getPath().toUri().getPath()) for one in listing.get()]
        except Py4JJavaError as failure:
            assert "Path /many/none does not exist" in str(failure)  # noqa: PT017
            found.append("none")
    assert found == ["/many/a/b", "/many/a/c", "/many/d/e", "none"]
    refused = ours.run("hdfs.tools.StoragePolicyAdmin", "-satisfyStoragePolicy", "-path", "/many")
    assert "or use Mover tool" in refused.said


def test_metasave_writes_below_the_log_directory(ours: OurCluster) -> None:
    said = ours.dfsadmin("-metasave", "meta.txt")
    assert "Created metasave file meta.txt in the log directory of namenode" in said
    assert "Skip Standby NameNode" in said
    text = (ours.cluster.layout.directory / "meta.txt").read_text()
    assert "Live Datanodes: 1\n" in text


def nnha(ours: OurCluster, *words: str) -> Ran:
    done = subprocess.run(
        ours.cluster.command(*words), capture_output=True, text=True, timeout=60, check=False
    )
    return Ran(done.returncode, done.stdout or done.stderr)


@pytest.mark.row("B30")
def test_fsck_finds_good_few_and_missing_replicas(ours: OurCluster, tmp_path: Path) -> None:
    (tmp_path / "six").write_text("6 more")
    ours.shell("-mkdir", "-p", "/checked")
    for name, replication in (("good", "1"), ("few", "3")):
        ours.shell("-put", str(tmp_path / "six"), f"/checked/{name}")
        ours.shell("-setrep", replication, f"/checked/{name}")
    said = ours.well(DFSCK, "/checked", "-files", "-blocks", "-locations", "-storagepolicies")
    assert f"\nDISK:1(HOT){'2':>25}{'100.0000%':>22}\n" in said
    assert "/checked/good 6 bytes, replicated: replication=1, 1 block(s):  OK\n" in said
    assert "Live_repl=1  [DatanodeInfoWithStorage[127.0.0.1:" in said
    assert "found 1 live replica(s), 0 decommissioned replica(s)" in said
    assert " Under-replicated blocks:\t1 (50.0 %)\n" in said
    assert said.rstrip().endswith("The filesystem under path '/checked' is HEALTHY")
    assert "does not exist" in ours.well(DFSCK, "/checked/none")
    refused = ours.run(DFSCK, "/checked", "-delete")
    assert (refused.status, "nothing was changed" in refused.said) == (-1, True)
    block = said.partition("blk_")[2].partition(" ")[0]
    told = nnha(ours, "explain", "block", block)
    assert (told.status, "1 of " in told.said) == (0, True), told.said
    assert "queue" in nnha(ours, "explain", "file", "/checked/few").said
    assert nnha(ours, "fsck", "/checked/none").status == 3
    assert nnha(ours, "fsck", "/checked").status == 0
    (datanode,) = ours.cluster.datanodes
    ours.cluster.kill(datanode)
    for replica in ours.cluster.layout.data_dir(datanode).rglob("blk_*"):
        replica.unlink()
    ours.cluster.heal()
    wait_until(
        lambda: nnha(ours, "fsck", "/checked").status == 8,
        what="the report of the loss",
        deadline_seconds=60,
    )
    corrupt = ours.run(DFSCK, "/checked")
    assert corrupt.status == 1, corrupt.said
    assert "\n/checked/good: MISSING 1 blocks of total size 6 B." in corrupt.said
    listed = ours.run(DFSCK, "/", "-list-corruptfileblocks")
    assert "\t/checked/good" in listed.said
    told = nnha(ours, "fsck", "/checked", "-o", "json")
    document = json.loads(told.said)
    assert (told.status, document["healthy"]) == (8, False)
    states = {one["path"]: one["state"] for one in document["blocks"]}
    assert states == {"/checked/good": "missing", "/checked/few": "missing"}


def test_quotas_of_space_refuse_hadoop_s_client(ours: OurCluster, tmp_path: Path) -> None:
    """A block is charged whole while it is written, and by its bytes once it is closed."""
    (tmp_path / "f").write_bytes(bytes(1 << 20))
    ours.shell("-mkdir", "/quota")
    ours.dfsadmin("-setSpaceQuota", "387m", "/quota")
    put = ("-put", str(tmp_path / "f"))
    ours.shell(*put, "/quota/first")
    assert ours.shell("-stat", "%r", "/quota/first").strip() == "3"
    ours.shell(*put, "/quota/second")
    refused = ours.run(SHELL, *put, "/quota/third")
    assert refused.status == 1
    assert "The DiskSpace quota of /quota is exceeded: quota = 405798912 B = 387 MB" in refused.said
    assert f"diskspace consumed = {390 << 20} B = 390 MB" in refused.said
    assert ours.shell("-count", "-q", "/quota").split()[2:4] == ["405798912", str(381 << 20)]
    refused = ours.run(SHELL, "-setrep", "500", "/quota/first")
    assert refused.status == 1
    ours.dfsadmin("-setSpaceQuota", "1g", "-storageType", "DISK", "/quota")
    shown = ours.shell("-count", "-q", "-t", "DISK", "/quota")
    assert "1073741824" in shown
    ours.dfsadmin("-clrSpaceQuota", "/quota")
    ours.shell("-put", "-f", str(tmp_path / "f"), "/quota/third")


def data_node(ours: OurCluster) -> str:
    (name,) = ours.cluster.datanodes
    return f"127.0.0.1:{ours.cluster.layout.datanodes[name].rpc}"


@pytest.mark.parametrize("words", [("upgrade",), ()], ids=["for an upgrade", "for good"])
def test_a_datanode_is_shut_down(ours: OurCluster, tmp_path: Path, words: tuple[str, ...]) -> None:
    """A client goes on with the only DataNode of its pipeline if that is back soon."""
    (name,) = ours.cluster.datanodes
    process, files = ours.cluster.process(name), ours.hadoop.hadoop.fs.FileSystem
    client = files.newInstance(ours.configuration())
    open_file = client.create(ours.hadoop.path("/restarted"), True)
    open_file.write(bytes(3000))
    open_file.hflush()
    said = ours.dfsadmin("-shutdownDatanode", data_node(ours), *words)
    assert "Submitted a shutdown request to datanode" in said
    assert process.wait(30) == 0
    ours.cluster.heal()
    # The JVM keeps connections, and sees the end of this one only with its next call.
    ours.run(DFSADMIN, "-getDatanodeInfo", data_node(ours))
    if not words:
        with pytest.raises(Py4JJavaError):
            open_file.close()
        client.close()
        return
    open_file.write(bytes(2000))
    open_file.close()
    client.close()
    ours.shell("-get", "/restarted", str(tmp_path / "got"))
    assert (tmp_path / "got").read_bytes() == bytes(5000)


def test_a_datanode_is_asked_for_reports_and_to_evict_writers(ours: OurCluster) -> None:
    address = data_node(ours)
    assert "Uptime: " in ours.dfsadmin("-getDatanodeInfo", address)
    for words in ((), ("-incremental",)):
        said = ours.dfsadmin("-triggerBlockReport", *words, address)
        assert "Triggering a" in said
    assert "Requested writer eviction" in ours.dfsadmin("-evictWriters", address)


def test_what_can_change_live_changes(ours: OurCluster) -> None:
    site = ours.cluster.conf_dir / "hdfs-site.xml"
    before = site.read_text()
    namenode = ours.cluster.layout.namenodes[ours.cluster.wait_for_active()].rpc
    of = {
        "namenode": (f"127.0.0.1:{namenode}", "dfs.namenode.heartbeat.recheck-interval", "4321"),
        "datanode": (data_node(ours), "dfs.blockreport.intervalMsec", "often"),
    }
    try:
        for kind, (address, key, value) in of.items():
            assert key in ours.dfsadmin("-reconfig", kind, address, "properties")
            assert "no task was found" in ours.dfsadmin("-reconfig", kind, address, "status")
            added = f"<property><name>{key}</name><value>{value}</value></property>"
            site.write_text(before.replace("</configuration>", f"{added}</configuration>"))
            ours.dfsadmin("-reconfig", kind, address, "start")
            said = ours.dfsadmin("-reconfig", kind, address, "status")
            assert f"property {key}" in said
            assert f'To: "{value}"' in said
            assert ("SUCCESS: Changed" in said) == (kind == "namenode")
            assert ("hdfs-site.xml line" in said) == (kind == "datanode")
    finally:
        site.write_text(before)


def test_there_is_no_upgrade_to_finalize(ours: OurCluster) -> None:
    assert "Finalize upgrade successful" in ours.dfsadmin("-finalizeUpgrade")
