"""Writes a local cluster's core-site.xml, hdfs-site.xml, log settings and fencing script."""

import shlex
import xml.sax.saxutils
from collections.abc import Mapping
from pathlib import Path

from deploy.local.cluster.layout import NAMESERVICE, Layout
from deploy.local.cluster.ports import HOST

_FENCE_SCRIPT = "fence-namenode.sh"
_FAILOVER_PROXY = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"


def core_site(layout: Layout) -> dict[str, str]:
    return {
        "fs.defaultFS": f"hdfs://{NAMESERVICE}",
        "hadoop.tmp.dir": str(layout.directory / "tmp"),
        "ha.zookeeper.quorum": f"{HOST}:{layout.zookeeper}",
    }


def hdfs_site(layout: Layout) -> dict[str, str]:
    """Return the keys of hdfs-site.xml; of the client's only the one that HA cannot do without."""
    ns = NAMESERVICE
    journals = ";".join(f"{HOST}:{ports.rpc}" for ports in layout.journalnodes.values())
    fence = shlex.quote(str(layout.conf_dir / _FENCE_SCRIPT))
    site = {
        "dfs.nameservices": ns,
        f"dfs.ha.namenodes.{ns}": ",".join(layout.namenodes),
        f"dfs.client.failover.proxy.provider.{ns}": _FAILOVER_PROXY,
        "dfs.namenode.shared.edits.dir": f"qjournal://{journals}/{ns}",
        "dfs.ha.automatic-failover.enabled": "true",
        "dfs.ha.fencing.methods": f"shell({fence})",
        "dfs.ha.tail-edits.period": "1s",
        # A standby that waits for ended segments knows of files that clients deleted ten seconds
        # ago, and in its safe mode waits for their blocks.
        "dfs.ha.tail-edits.in-progress": "true",
        "dfs.ha.log-roll.period": "10s",
        # A person that plays with the cluster does not wait ten minutes for a DataNode to be dead,
        # nor half a minute for one to be late.
        "dfs.heartbeat.interval": "1s",
        "dfs.namenode.heartbeat.recheck-interval": "5000",
        # Nor five minutes for a copy that does not come, because the replica that was to be copied
        # is damaged, say, and that had not been found yet.
        "dfs.namenode.reconstruction.pending.timeout-sec": "10",
        "dfs.namenode.safemode.extension": "1000",
        "nnha.web.http-address": f"{HOST}:{layout.web}",
        "nnha.web.url": layout.url("web"),
        "nnha.zkfc.session.dir": str(layout.directory / "tmp" / "zkfc"),
    }
    if layout.datanodes:
        # With three DataNodes none can take the place of one that died in a pipeline; clients give
        # up an append then, unless this is set.
        site["dfs.client.block.write.replace-datanode-on-failure.best-effort"] = "true"
    for name, ports in layout.namenodes.items():
        own = f"{ns}.{name}"
        site |= {
            f"dfs.namenode.rpc-address.{own}": f"{HOST}:{ports.rpc}",
            f"dfs.namenode.http-address.{own}": f"{HOST}:{ports.http}",
            f"dfs.namenode.name.dir.{own}": layout.name_dir(name).as_uri(),
            f"dfs.ha.zkfc.port.{own}": str(ports.zkfc_rpc),
            f"nnha.zkfc.http-address.{own}": f"{HOST}:{ports.zkfc_http}",
        }
    return site


def journalnode_overrides(layout: Layout, name: str) -> dict[str, str]:
    """Return the keys for one JournalNode's command line: all share one set of files."""
    ports = layout.journalnodes[name]
    return {
        "dfs.journalnode.rpc-address": f"{HOST}:{ports.rpc}",
        "dfs.journalnode.http-address": f"{HOST}:{ports.http}",
        "dfs.journalnode.edits.dir": str(layout.edits_dir(name)),
    }


def datanode_overrides(layout: Layout, name: str) -> dict[str, str]:
    """Return the keys for one DataNode's command line: all share one set of files."""
    ports = layout.datanodes[name]
    return {
        "dfs.datanode.address": f"{HOST}:{ports.transfer}",
        "dfs.datanode.ipc.address": f"{HOST}:{ports.rpc}",
        "dfs.datanode.http.address": f"{HOST}:{ports.http}",
        "dfs.datanode.data.dir": layout.data_dir(name).as_uri(),
    }


def write_conf_dir(layout: Layout, more: Mapping[str, str] | None = None) -> None:
    """Write everything that the daemons and the clients read; keys of ``more`` win."""
    conf = layout.conf_dir
    conf.mkdir(parents=True, exist_ok=True)
    (conf / "core-site.xml").write_text(site_xml(core_site(layout)))
    (conf / "hdfs-site.xml").write_text(site_xml(hdfs_site(layout) | dict(more or {})))
    script = conf / _FENCE_SCRIPT
    script.write_text(Path(__file__).with_name(_FENCE_SCRIPT).read_text())
    script.chmod(0o755)


def site_xml(keys: Mapping[str, str]) -> str:
    escape = xml.sax.saxutils.escape
    properties = "".join(
        f"  <property>\n    <name>{escape(name)}</name>\n"
        f"    <value>{escape(value)}</value>\n  </property>\n"
        for name, value in keys.items()
    )
    return f'<?xml version="1.0"?>\n<configuration>\n{properties}</configuration>\n'
