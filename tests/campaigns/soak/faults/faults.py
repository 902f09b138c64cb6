"""Faults as data.

NameNodes are named by what they are when the fault strikes: ``active``, ``standby1``, ``standby2``.
``zkfc-active`` is the ZKFC of the active, and so on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from typing import Any, Final, TypeAlias

from tests.campaigns.soak.faults import hosts

ACTIVE: Final = "active"
STANDBYS: Final = ("standby1", "standby2")
ROLES: Final = (ACTIVE, *STANDBYS)
ZKFCS: Final = tuple(f"zkfc-{role}" for role in ROLES)
ALL: Final = (*hosts.ZOOKEEPERS, *hosts.JOURNALNODES, *ROLES, hosts.CLIENTS, hosts.READERS)


@dataclass(frozen=True, slots=True)
class Kill:
    """SIGKILL to these processes at once, and no start until the fault is over."""

    processes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Freeze:
    """SIGSTOP to these processes, and SIGCONT when the fault is over."""

    processes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """All packets on these ways, (from, to), are lost; ``flaps``: so often, with breaks between."""

    ways: tuple[tuple[str, str], ...]
    shape: str
    """How it was drawn, for reports: host, halves, one-way, bridge ..."""
    flaps: int = 1


@dataclass(frozen=True, slots=True)
class Loss:
    """The percentage of the packets that a host sends or is sent which are lost."""

    host: str
    percent: int


@dataclass(frozen=True, slots=True)
class Narrow:
    """All that a host sends or is sent waits in a queue before a slow link."""

    host: str
    kilobits: int
    queue_milliseconds: int


@dataclass(frozen=True, slots=True)
class FullDisk:
    """No byte is free on a host's disk; afterwards its process starts anew, as documents say."""

    host: str


@dataclass(frozen=True, slots=True)
class ReadOnlyDisk:
    """A host comes back from a crash with its disk mounted read only."""

    host: str


@dataclass(frozen=True, slots=True)
class SlowDisk:
    """Each flush of a host's files takes longer."""

    host: str
    milliseconds: int


@dataclass(frozen=True, slots=True)
class Wipe:
    """A JournalNode comes back with an empty disk, and is taken in again as documents say."""

    host: str


@dataclass(frozen=True, slots=True)
class Clock:
    """The wall clock of a host is wrong."""

    host: str
    offset_seconds: float


@dataclass(frozen=True, slots=True)
class Switchover:
    """An operator makes a standby active."""

    target: str


@dataclass(frozen=True, slots=True)
class Pause:
    """An operator pauses automatic failovers; with ``kill`` the active is killed in it."""

    kill: bool


@dataclass(frozen=True, slots=True)
class Drain:
    """An operator takes a NameNode out of the election for a while."""

    namenode: str


@dataclass(frozen=True, slots=True)
class RollingRestart:
    """An operator restarts processes one after the other, each once all is well."""

    processes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Revenant:
    """The active is stopped, replaced, and goes on when its successor has written.

    It hears those who only read, and JournalNodes unless it is ``cut_off``: so it shows what it
    does by itself, and what JournalNodes let it do.  ``restarted``: before it goes on, these
    JournalNodes are killed and started again, and its successor does not reach them: what they
    did not write down is forgotten.
    """

    restarted: tuple[str, ...] = ()
    cut_off: bool = False


What: TypeAlias = (
    Kill | Freeze | Cut | Loss | Narrow | FullDisk | ReadOnlyDisk | SlowDisk | Wipe | Clock
    | Switchover | Pause | Drain | RollingRestart | Revenant
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens, how many seconds after the round began, for how many seconds."""

    what: What
    after_seconds: float
    seconds: float

    @property
    def kind(self) -> str:
        """For tables: the class, and what distinguishes faults within it."""
        match self.what:
            case Kill(processes) | Freeze(processes):
                parts = "+".join(sorted({_genus(process) for process in processes}))
                many = f" x{len(processes)}" if len(processes) > 2 or _same(processes) else ""
                return f"{type(self.what).__name__.lower()} {parts}{many}"
            case Cut(_, shape, flaps):
                return f"cut {shape}" + (" flapping" if flaps > 1 else "")
            case Revenant(restarted, cut_off):
                forgetful = ", forgetful journals" if restarted else ""
                return f"revenant{', cut off' if cut_off else forgetful}"
            case _:
                return _NAMES[type(self.what)]

    def line(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "what": type(self.what).__name__,
            "after_seconds": self.after_seconds,
            "seconds": self.seconds,
            **asdict(self.what),
        }


_NAMES: Final[dict[type, str]] = {
    Loss: "loss",
    Narrow: "narrow link",
    FullDisk: "full disk",
    ReadOnlyDisk: "read-only disk",
    SlowDisk: "slow disk",
    Wipe: "wiped journalnode",
    Clock: "clock",
    Switchover: "switchover",
    Pause: "pause",
    Drain: "drain",
    RollingRestart: "rolling restart",
}


def _genus(process: str) -> str:
    if process in ROLES:
        return "active" if process == ACTIVE else "standby"
    if process.startswith("zkfc-"):
        return "zkfc"
    if process in hosts.DATANODES:
        return "datanode"
    return "journalnode" if process in hosts.JOURNALNODES else "zookeeper"


def _same(processes: Sequence[str]) -> bool:
    return len(processes) > 1 and len({_genus(process) for process in processes}) == 1


def ways_between(one: Sequence[str], other: Sequence[str]) -> tuple[tuple[str, str], ...]:
    pairs = product(one, other)
    return tuple(way for a, b in pairs for way in ((a, b), (b, a)))


def named(what: What, roles: Mapping[str, str]) -> What:
    """Replace roles by NameNodes' own names; ``roles`` says which is which just now."""

    def of(value: object) -> Any:  # noqa: ANN401 - whatever a field holds
        match value:
            case str() if value.startswith("zkfc-"):
                return f"zkfc-{of(value.removeprefix('zkfc-'))}"
            case str():
                return roles.get(value, value)
            case tuple():
                return tuple(map(of, value))
            case _:
                return value

    return replace(what, **{each.name: of(getattr(what, each.name)) for each in fields(what)})
