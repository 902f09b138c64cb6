"""Where a local cluster's parts live: directories and ports, kept so that it can start again."""

import dataclasses
import json
from collections.abc import Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

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


P = TypeVar("P", JournalNodePorts, NameNodePorts, DataNodePorts)


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

    def url(self, part: str) -> str:
        """Return the URL of a part's endpoints; ZooKeeper has none."""
        ports = {"web": self.web}
        for daemons in (self.journalnodes, self.namenodes, self.datanodes):
            ports |= {name: one.http for name, one in daemons.items()}
        ports |= {f"zkfc-{name}": one.zkfc_http for name, one in self.namenodes.items()}
        return f"http://{HOST}:{ports[part]}"

    def all_ports(self) -> tuple[int, ...]:
        daemons = (self.journalnodes, self.namenodes, self.datanodes)
        each = (dataclasses.astuple(one) for kind in daemons for one in kind.values())
        return (self.zookeeper, self.web, *chain.from_iterable(each))

    def save(self) -> None:
        """Write it into the directory, for ``load``."""
        facts = dataclasses.asdict(self)
        del facts["directory"]  # the directory may be moved as a whole
        (self.directory / _FILE).write_text(json.dumps(facts, indent=2) + "\n")


def plan(directory: Path, *, base_port: int | None = None, datanodes: int = 0) -> Layout:
    """Plan a new cluster's layout, on free ports or on those from ``base_port`` on."""
    names = [f"dn{number}" for number in range(1, datanodes + 1)]
    kinds = ((JournalNodePorts, JOURNALNODES), (NameNodePorts, NAMENODES), (DataNodePorts, names))
    count = 2 + sum(len(dataclasses.fields(kind)) * len(parts) for kind, parts in kinds)
    ports = iter(free_ports(count) if base_port is None else ports_from(base_port, count))

    def own(kind: type[P], parts: Sequence[str]) -> dict[str, P]:
        needed = len(dataclasses.fields(kind))
        return {part: kind(*islice(ports, needed)) for part in parts}

    return Layout(
        directory=directory.resolve(),
        zookeeper=next(ports),
        journalnodes=own(JournalNodePorts, JOURNALNODES),
        namenodes=own(NameNodePorts, NAMENODES),
        datanodes=own(DataNodePorts, names),
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
