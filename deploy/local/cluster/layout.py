"""Where a local cluster's parts live: directories and ports, kept so that it can start again."""

import dataclasses
import json
from pathlib import Path

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.ports import HOST, free_ports, ports_from
from ha.record import dataclass, field

NAMESERVICE = "ns1"
NAMENODES = ("nn1", "nn2")
JOURNALNODES = ("jn1", "jn2", "jn3")

_FILE = "cluster.json"


@dataclass(frozen=True, slots=True)
class NameNodePorts:
    """One NameNode's ports and those of the ZKFC next to it."""

    rpc: int
    http: int
    zkfc_rpc: int
    zkfc_http: int


@dataclass(frozen=True, slots=True)
class JournalNodePorts:
    """Where one JournalNode listens."""

    rpc: int
    http: int


@dataclass(frozen=True, slots=True)
class DataNodePorts:
    """Where one DataNode listens."""

    transfer: int
    rpc: int
    http: int


@dataclass(frozen=True, slots=True)
class Layout:
    """A cluster of one nameservice ``ns1`` under one directory, all on loopback."""

    directory: Path
    zookeeper: int
    journalnodes: dict[str, JournalNodePorts]
    namenodes: dict[str, NameNodePorts]
    datanodes: dict[str, DataNodePorts] = field(default_factory=dict)
    web: int = 0
    """The port of the page of the whole cluster."""

    @property
    def conf_dir(self) -> Path:
        """Holds core-site.xml and hdfs-site.xml."""
        return self.directory / "conf"

    def name_dir(self, namenode: str) -> Path:
        return self.directory / "data" / namenode / "name"

    def edits_dir(self, journalnode: str) -> Path:
        """Return one JournalNode's storage; the journal is a directory in it."""
        return self.directory / "data" / journalnode

    def data_dir(self, datanode: str) -> Path:
        return self.directory / "data" / datanode

    def namenode_url(self, namenode: str) -> str:
        return f"http://{HOST}:{self.namenodes[namenode].http}"

    def zkfc_url(self, namenode: str) -> str:
        return f"http://{HOST}:{self.namenodes[namenode].zkfc_http}"

    def journalnode_url(self, journalnode: str) -> str:
        return f"http://{HOST}:{self.journalnodes[journalnode].http}"

    def datanode_url(self, datanode: str) -> str:
        return f"http://{HOST}:{self.datanodes[datanode].http}"

    @property
    def web_url(self) -> str:
        return f"http://{HOST}:{self.web}"

    def all_ports(self) -> tuple[int, ...]:
        ports = [self.zookeeper, self.web]
        for journal in self.journalnodes.values():
            ports += dataclasses.astuple(journal)
        for name in self.namenodes.values():
            ports += dataclasses.astuple(name)
        for datanode in self.datanodes.values():
            ports += dataclasses.astuple(datanode)
        return tuple(ports)

    def save(self) -> None:
        """Write it into the directory, for ``load``."""
        facts = dataclasses.asdict(self)
        del facts["directory"]  # the directory may be moved as a whole
        (self.directory / _FILE).write_text(json.dumps(facts, indent=2) + "\n")


def plan(directory: Path, *, base_port: int | None = None, datanodes: int = 0) -> Layout:
    """Plan a new cluster's layout, on free ports or on those from ``base_port`` on."""
    per_journal = len(dataclasses.fields(JournalNodePorts))
    per_name = len(dataclasses.fields(NameNodePorts))
    per_data = len(dataclasses.fields(DataNodePorts))
    count = (
        1 + per_journal * len(JOURNALNODES) + per_name * len(NAMENODES) + per_data * datanodes + 1
    )
    ports = iter(free_ports(count) if base_port is None else ports_from(base_port, count))
    return Layout(
        directory=directory.resolve(),
        zookeeper=next(ports),
        journalnodes={
            name: JournalNodePorts(*(next(ports) for _ in range(per_journal)))
            for name in JOURNALNODES
        },
        namenodes={
            name: NameNodePorts(*(next(ports) for _ in range(per_name))) for name in NAMENODES
        },
        datanodes={
            f"dn{number}": DataNodePorts(*(next(ports) for _ in range(per_data)))
            for number in range(1, datanodes + 1)
        },
        web=next(ports),
    )


def load(directory: Path) -> Layout | None:
    """Return the layout of the cluster made in this directory, or None where there is none."""
    path = directory / _FILE
    try:
        facts = json.loads(path.read_text())
        return Layout(
            directory=directory.resolve(),
            zookeeper=facts["zookeeper"],
            journalnodes={
                name: JournalNodePorts(**ports) for name, ports in facts["journalnodes"].items()
            },
            namenodes={name: NameNodePorts(**ports) for name, ports in facts["namenodes"].items()},
            datanodes={
                name: DataNodePorts(**ports) for name, ports in facts.get("datanodes", {}).items()
            },
            # A cluster that was made by an earlier version has no port for the page yet.
            web=facts.get("web") or free_ports(1)[0],
        )
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LocalClusterError(
            f"Read {path}, which describes a local cluster; it is damaged ({error!r}). "
            f"Give another directory"
        ) from error
