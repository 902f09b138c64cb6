"""`./run soak hbase`: HBase on our cluster keeps each row through kills of NameNodes and its own.

HBase comes from Maven Central.  A master and a region server run on files of a local cluster, and
rows are put by HBase's client.  In each part of the rows the active NameNode is killed; in some a
DataNode or the region server is, too.  At the end all of HBase and the active are killed at once
and started anew, and each row is read.
"""

import contextlib
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click

from deploy.local.cluster.cluster import Cluster, open_cluster
from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.java import find_jars
from deploy.local.cluster.places import fresh_directory
from deploy.local.cluster.ports import HOST, free_ports
from deploy.local.cluster.processes import Supervisor, wait_until
from deploy.local.cluster.signals import orderly_end
from deploy.local.cluster.site import site_xml
from deploy.local.demo.screen import Screen
from deploy.local.workload.java_client import GATEWAY_FLAGS, gateway_of
from deploy.local.workload.trial import other, settle
from tests.campaigns.bench.report import machine
from tests.campaigns.soak.hbase_rows import BATCH, Found, Rows, parts
from tests.interop import maven
from tests.interop.hadoop_jars import JarsMissing

VERSION: Final = "2.6.4-hadoop3"
DATANODES: Final = 4
"""One more than the replication, so that one may be away."""
TABLE: Final = "rows"
SERVER_SECONDS: Final = 180.0
"""For HBase to start, or to replay its logs."""
PART_SECONDS: Final = 600.0
_POM: Final = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>nnha</groupId><artifactId>hbase</artifactId><version>1</version>
<dependencies><dependency>
<groupId>org.apache.hbase</groupId><artifactId>hbase-server</artifactId><version>{VERSION}</version>
</dependency></dependencies></project>
"""
_LOG4J: Final = """\
log4j.rootLogger=INFO,A
log4j.appender.A=org.apache.log4j.ConsoleAppender
log4j.appender.A.target=System.err
log4j.appender.A.layout=org.apache.log4j.PatternLayout
log4j.appender.A.layout.ConversionPattern=%d %-5p [%t] %c{2}: %m%n
"""
_OPENED: Final = (
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.reflect=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-exports=java.base/sun.security.pkcs=ALL-UNNAMED",
)
_MASTER, _REGIONS, _CLIENT = "hbase-master", "hbase-regionserver", "hbase-client"
_MAINS: Final = {
    _MASTER: ("-Xmx700m", "org.apache.hadoop.hbase.master.HMaster"),
    _REGIONS: ("-Xmx900m", "org.apache.hadoop.hbase.regionserver.HRegionServer"),
}
_SHOWN: Final = (
    *("acknowledged", "failed", "lost", "wrong", "kills", "datanode_kills"),
    *("region_server_kills", "longest_put_seconds", "failover_seconds_max"),
)


@dataclass(slots=True)
class HBase:
    """A master and a region server on the files of a cluster, and a JVM with the client."""

    cluster: Cluster
    supervisor: Supervisor
    libraries: Path
    conf: Path

    def configure(self) -> None:
        master, regions = free_ports(2)
        keys = {
            "hbase.rootdir": "hdfs://ns1/hbase",
            "hbase.cluster.distributed": "true",
            "hbase.zookeeper.quorum": HOST,
            "hbase.zookeeper.property.clientPort": str(self.cluster.layout.zookeeper),
            "zookeeper.session.timeout": "20000",
            "hbase.tmp.dir": str(self.supervisor.directory / "tmp"),
            # Small files and logs: there is much to write, to close and to rename.
            "hbase.hregion.memstore.flush.size": "2097152",
            "hbase.regionserver.hlog.blocksize": "4194304",
            "hbase.regionserver.logroll.period": "20000",
        }
        for part, port in (("master", master), ("regionserver", regions)):
            keys |= {
                f"hbase.{part}.hostname": HOST,
                f"hbase.{part}.ipc.address": HOST,
                f"hbase.{part}.port": str(port),
                f"hbase.{part}.info.port": "-1",
            }
        self.conf.mkdir(parents=True)
        (self.conf / "hbase-site.xml").write_text(site_xml(keys))
        (self.conf / "log4j.properties").write_text(_LOG4J)

    def start(self, part: str) -> None:
        heap, main = _MAINS[part]
        self.supervisor.start(part, [*self._java(heap), main, "start"])

    def kill(self, part: str) -> None:
        self.supervisor.processes[part].kill()

    def client(self) -> Rows:
        argv = [*self._java("-Xmx400m"), "py4j.GatewayServer", *GATEWAY_FLAGS]
        rows = Rows(gateway_of(self.supervisor.start(_CLIENT, argv, talks=True)))
        rows.connect()
        return rows

    def wait_until_served(self, rows: Rows) -> None:
        wait_until(
            lambda: rows.servers() == 1,
            what="HBase's master and region server",
            deadline_seconds=SERVER_SECONDS,
            abandon=self._ended_early,
        )

    def _ended_early(self) -> str | None:
        ends = (self.supervisor.processes[part].ended_early() for part in (_MASTER, _REGIONS))
        return next(filter(None, ends), None)

    def _java(self, heap: str) -> list[str]:
        (py4j,) = find_jars().glob("py4j-*.jar")
        places = (self.conf, self.cluster.conf_dir, py4j, f"{self.libraries}/*")
        flags = (heap, "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true", *_OPENED)
        temporary = self.supervisor.directory / "tmp"
        temporary.mkdir(exist_ok=True)
        own = f"-Djava.io.tmpdir={temporary}"
        return [
            *(str(self.cluster.java.executable), *flags, own),
            *("-cp", os.pathsep.join(map(str, places))),
        ]


@dataclass(slots=True)
class Played:
    """What was killed, and what HBase kept."""

    rows: Rows
    found: list[Found] = field(default_factory=list)
    failovers_seconds: list[float] = field(default_factory=list)
    datanode_kills: int = 0
    region_server_kills: int = 0

    def facts(self) -> dict[str, object]:
        lost = sum(len(each.lost) for each in self.found)
        wrong = sum(len(each.wrong) for each in self.found)
        return {
            "well": not (lost or wrong or self.rows.failed) and bool(self.rows.acknowledged),
            "acknowledged": len(self.rows.acknowledged),
            "failed": len(self.rows.failed),
            "errors": self.rows.failed[:10],
            "lost": lost,
            "wrong": wrong,
            "counted": [each.rows for each in self.found],
            "kills": len(self.failovers_seconds),
            "datanode_kills": self.datanode_kills,
            "region_server_kills": self.region_server_kills,
            "longest_put_seconds": round(self.rows.longest_seconds, 2),
            "failover_seconds_max": round(max(self.failovers_seconds, default=0.0), 3),
        }


@click.command("hbase")
@click.option("--rows", default=50_000, show_default=True, type=click.IntRange(min=100))
@click.option("--kills", default=6, show_default=True, type=click.IntRange(2), help="Of NameNodes.")
@click.option("--json", "as_object", is_flag=True, help="One JSON object as stdout's last line.")
@click.option("--directory", type=click.Path(path_type=Path, file_okay=False))
@click.option("--seeds", type=int, expose_value=False, help="Accepted by all soaks; not used here.")
@click.option("--first-seed", type=int, expose_value=False, help="The same.")
@click.option("--jobs", type=int, expose_value=False, help="The same.")
def main(*, rows: int, kills: int, as_object: bool, directory: Path | None) -> None:
    """Run HBase on a local cluster, and kill its NameNodes, DataNodes and region server.

    Exit code 0 only if every acknowledged row is read again with its value, also from a clone of a
    snapshot and after a start of everything, and no put failed.  With NNHA_INTEROP=1 Maven fetches
    HBase, once.
    """
    screen = Screen.on_stderr_if(as_object)
    began = time.monotonic()
    place = directory or fresh_directory("soak-hbase")
    try:
        libraries = maven.fetched("hbase", _POM, "hbase-server-*.jar")
        with orderly_end(), _running(place, libraries) as hbase:
            facts = play(hbase, rows, kills, screen).facts()
    except (JarsMissing, LocalClusterError) as error:
        raise click.ClickException(str(error)) from error
    facts |= {"seconds": round(time.monotonic() - began, 1), "machine": machine()}
    well = bool(facts["well"])
    screen.summary(
        "every row is there" if well else "NOT WELL",
        [(name, str(facts[name])) for name in _SHOWN],
        well=well,
    )
    if as_object:
        click.echo(json.dumps(facts))
    raise SystemExit(0 if well else 1)


def play(hbase: HBase, rows: int, kills: int, screen: Screen) -> Played:
    """Put all rows in one part for each kill but the last, which ends everything at once."""
    played = Played(hbase.client())
    table = played.rows
    hbase.wait_until_served(table)
    table.create(TABLE)
    for number, part in enumerate(parts(rows, kills - 1)):
        screen.title(f"kill {number + 1} of {kills}, under rows {part.start} to {part.stop}")
        _play_part(hbase, played, number, part)
    screen.title("flush, compact, clone of a snapshot")
    table.flush_and_compact(TABLE)
    table.clone(TABLE, "snapshot", "cloned")
    played.found.append(table.found("cloned"))
    screen.title("kill -9 of the active and of all of HBase, and a new start")
    hbase.kill(_MASTER)
    hbase.kill(_REGIONS)
    played.failovers_seconds.append(_replace_active(hbase.cluster))
    hbase.start(_MASTER)
    hbase.start(_REGIONS)
    hbase.wait_until_served(table)
    played.found.append(table.found(TABLE))
    return played


def _play_part(hbase: HBase, played: Played, number: int, part: range) -> None:
    """Strike while the rows of a part are put: a third of them first, then the others."""
    table, cluster = played.rows, hbase.cluster
    enough = len(table.acknowledged) + max(BATCH, len(part) // 3)
    putting = threading.Thread(target=table.put, args=(TABLE, part), name="rows")
    putting.start()
    wait_until(
        lambda: len(table.acknowledged) >= enough or not putting.is_alive(),
        what="rows to be put",
        deadline_seconds=PART_SECONDS,
    )
    datanode = cluster.datanodes[number % len(cluster.datanodes)]
    match number % 3:
        case 1:
            cluster.kill(datanode)
            played.datanode_kills += 1
        case 2:  # what was not flushed is in its logs alone
            hbase.kill(_REGIONS)
            hbase.start(_REGIONS)
            played.region_server_kills += 1
        case _:
            pass
    played.failovers_seconds.append(_replace_active(cluster))
    putting.join(PART_SECONDS)
    if putting.is_alive():
        raise LocalClusterError(f"Put rows {part} into HBase; not done after {PART_SECONDS:.0f} s")
    cluster.heal()


def _replace_active(cluster: Cluster) -> float:
    """Kill the active; return the seconds until the other is, once both are well again."""
    old = cluster.wait_for_active()
    new, began = other(old), time.monotonic()
    cluster.kill(old)
    wait_until(
        lambda: cluster.active_namenodes() == [new], what=f"{new} active", deadline_seconds=60.0
    )
    took = time.monotonic() - began
    cluster.start(old)
    settle(cluster, old)
    return took


@contextlib.contextmanager
def _running(place: Path, libraries: Path) -> Iterator[HBase]:
    keys: Mapping[str, str] = {"dfs.namenode.checkpoint.txns": "5000"}
    own = place / "hbase"
    with (
        open_cluster(place / "cluster", more_keys=keys, datanodes=DATANODES) as cluster,
        Supervisor(own) as supervisor,
    ):
        cluster.up()
        hbase = HBase(cluster, supervisor, libraries, own / "conf")
        hbase.configure()
        hbase.start(_MASTER)
        hbase.start(_REGIONS)
        yield hbase
        cluster.down()
