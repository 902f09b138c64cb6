"""What the daemons and commands of a cluster under faults read."""

import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

from deploy.local.cluster.site import site_xml
from deploy.local.cluster.zookeeper import four_letters
from ha.conf.keys.hosts import MAPPING, TABLE, TABLE_MAPPING
from tests.campaigns.soak.faults import hosts
from tests.campaigns.soak.faults.disks import Disks
from tests.campaigns.soak.faults.hosts import address

FENCE_SCRIPT: Final = "fence.sh"
LOOK_SECONDS: Final = 2.0
_PROXY: Final = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
_FENCE: Final = """\
#!/bin/bash
# Fences a NameNode as a login on its host would: it kills the process, if the network lets it.
# A refused connection says that the host is there; silence says that nothing can be reached.
set -u
timeout 2 bash -c "exec 3<>/dev/tcp/$target_host/$target_port" 2>/dev/null
if [ $? = 124 ]; then
    echo "cannot fence $target_namenodeid: its host does not answer" >&2
    exit 1
fi
read -r pid <{pids}/$target_namenodeid.pid || exit 1
is_victim() {{
    tr '\\0' '\\n' <"/proc/$pid/cmdline" 2>/dev/null \\
        | grep -q -E "^(-D)?dfs.ha.namenode.id=$target_namenodeid\\$"
}}
is_victim || exit 0
kill -KILL "$pid"
for _ in $(seq 250); do
    is_victim || exit 0
    sleep 0.02
done
exit 1
"""

_ZOO: Final = """\
dataDir={data}
clientPort={port}
clientPortAddress={own}
tickTime=500
initLimit=20
syncLimit=6
admin.enableServer=false
4lw.commands.whitelist=srvr,ruok,mntr
maxClientCnxns=0
maxSessionTimeout=40000
{members}
"""
"""The limits of syncLimit and initLimit are in ticks: 3 s and 10 s."""


def core_site(directory: Path) -> dict[str, str]:
    quorum = ",".join(f"{address(host)}:{hosts.CLIENT_PORT}" for host in hosts.ZOOKEEPERS)
    return {
        "fs.defaultFS": f"hdfs://{hosts.NAMESERVICE}",
        "hadoop.tmp.dir": str(directory / "tmp"),
        "ha.zookeeper.quorum": quorum,
    }


def hdfs_site(disks: Disks, directory: Path, *, logs_in: bool) -> dict[str, str]:
    """Return the keys of both systems.

    ``logs_in``: fencing kills the old active where the network lets it, as sshfence does; where it
    cannot, and without, the journal's epochs must do.
    """
    fence = f"shell({directory / 'conf' / FENCE_SCRIPT})\n" if logs_in else ""
    ns = hosts.NAMESERVICE
    journals = ";".join(f"{address(host)}:{hosts.JOURNAL_PORT}" for host in hosts.JOURNALNODES)
    site = {
        "dfs.nameservices": ns,
        f"dfs.ha.namenodes.{ns}": ",".join(hosts.NAMENODES),
        f"dfs.client.failover.proxy.provider.{ns}": _PROXY,
        "dfs.namenode.shared.edits.dir": f"qjournal://{journals}/{ns}",
        "dfs.ha.automatic-failover.enabled": "true",
        "dfs.ha.fencing.methods": f"{fence}shell(/bin/true)",
        "dfs.ha.tail-edits.period": "1s",
        "dfs.ha.log-roll.period": "10s",
        "dfs.namenode.safemode.extension": "0",
    }
    for host in hosts.NAMENODES:
        own = f"{ns}.{host}"
        site |= {
            f"dfs.namenode.rpc-address.{own}": f"{address(host)}:{hosts.NAMENODE_PORT}",
            f"dfs.namenode.http-address.{own}": f"{address(host)}:{hosts.NAMENODE_HTTP_PORT}",
            f"dfs.namenode.name.dir.{own}": name_dir(disks, host).as_uri(),
            f"dfs.ha.zkfc.port.{own}": str(hosts.ZKFC_PORT),
            f"nnha.zkfc.http-address.{own}": f"{address(host)}:{hosts.ZKFC_HTTP_PORT}",
        }
    return site


def name_dir(disks: Disks, namenode: str) -> Path:
    return disks.place(namenode) / "name"


def journalnode_keys(disks: Disks, host: str) -> dict[str, str]:
    return {
        "dfs.journalnode.rpc-address": f"{address(host)}:{hosts.JOURNAL_PORT}",
        "dfs.journalnode.http-address": f"{address(host)}:{hosts.JOURNAL_HTTP_PORT}",
        "dfs.journalnode.edits.dir": str(disks.place(host)),
    }


FILE_KEYS: Final = {
    # No five minutes for a DataNode to be dead, nor for a copy that does not come.
    "dfs.heartbeat.interval": "1s",
    "dfs.namenode.heartbeat.recheck-interval": "5000",
    "dfs.namenode.reconstruction.pending.timeout-sec": "10",
    # With three DataNodes none can take the place of one that has left a pipeline.
    "dfs.client.block.write.replace-datanode-on-failure.best-effort": "true",
}
"""Where clients write files, for all daemons and for Hadoop's client."""


def write_racks(directory: Path) -> dict[str, str]:
    """Write a table that has the first DataNode on a rack of its own; return the keys for it."""
    table = directory / "racks"
    lines = (
        f"{address(host)} /rack{min(number, 2)}"
        for number, host in enumerate(hosts.DATANODES, start=1)
    )
    table.write_text("\n".join(lines) + "\n")
    return {MAPPING.name: TABLE_MAPPING, TABLE.name: str(table)}


def datanode_keys(disks: Disks, host: str) -> dict[str, str]:
    return {
        "dfs.datanode.address": f"{address(host)}:{hosts.DATANODE_PORT}",
        "dfs.datanode.ipc.address": f"{address(host)}:{hosts.DATANODE_IPC_PORT}",
        "dfs.datanode.http.address": f"{address(host)}:{hosts.DATANODE_HTTP_PORT}",
        "dfs.datanode.data.dir": disks.place(host).as_uri(),
    }


def write_conf_dir(directory: Path, core: dict[str, str], hdfs: dict[str, str]) -> Path:
    """Write both files and the fencing script; return the folder."""
    conf = directory / "conf"
    conf.mkdir(parents=True)
    (conf / "core-site.xml").write_text(site_xml(core))
    (conf / "hdfs-site.xml").write_text(site_xml(hdfs))
    script = conf / FENCE_SCRIPT
    script.write_text(_FENCE.format(pids=directory / "pids"))
    script.chmod(0o755)
    return conf


def write_zookeeper(disks: Disks, host: str) -> Path:
    """Write a member's configuration and its number onto its disk; return the configuration."""
    data = disks.place(host) / "data"
    data.mkdir(exist_ok=True)
    (data / "myid").write_text(host.removeprefix("zk") + "\n")
    members = "\n".join(
        f"server.{one.removeprefix('zk')}={address(one)}:{hosts.PEER_PORT}:{hosts.ELECTION_PORT}"
        for one in hosts.ZOOKEEPERS
    )
    path = disks.place(host) / "zoo.cfg"
    path.write_text(
        _ZOO.format(data=data, port=hosts.CLIENT_PORT, own=address(host), members=members)
    )
    return path


def zookeeper_serves(host: str) -> bool:
    """Return whether a member is part of a quorum."""
    return "Mode: " in four_letters(address(host), hosts.CLIENT_PORT, "srvr")


def listens(host: str, port: int) -> bool:
    with suppress(OSError), socket.create_connection((address(host), port), LOOK_SECONDS):
        return True
    return False
