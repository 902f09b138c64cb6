"""Which faults a seed has (swarm testing), and the planned ones among them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Final

USUAL_MESSAGE_KINDS: Final = ("lose-request", "lose-answer", "delay-request", "delay-answer")
STRANDED: Final = ("news", "report", "commit")
"""Requests to NameNodes that may be stranded by a rate of their own; all others share one."""
STRAND_KINDS: Final = ("strand-request", *(f"strand-{what}" for what in STRANDED))
"""The caller sees its connection end, and the request arrives all the same, only later."""
MESSAGE_KINDS: Final = (*USUAL_MESSAGE_KINDS, *STRAND_KINDS)
NAMENODE_KINDS: Final = ("kill-namenode", "freeze-namenode", "switch", "cut-journal", "safe-mode")
DATANODE_KINDS: Final = ("kill-datanode", "freeze-datanode", "cut-datanode", "wipe-volume")
WIDE_KINDS: Final = ("restart-all", "shrink")
"""Everything restarts; or every file wants one replica, and the active goes soon after."""
AIMED_KINDS: Final = ("cut-power", "kill-client", "there-and-back", "long-freeze", "ghost", "nap")
"""Bytes that were not synced go; a writer dies; the active changes twice; a NameNode sleeps; a
former active goes on with its orders; the last that happens is a moment without the read lease."""
HOST_KINDS: Final = ("decommission", "maintain")
"""A DataNode leaves: with its disks once it may, or for a while. One NameNode may hear of it later
than the other."""
LEAVING_KINDS: Final = ("leave-by-edit", "leave-amid", "leave-rack", "leave-dead", "leave-writer")
"""A DataNode leaves as files come to want less by an edit that may be lost; as the active changes
with deletions under way; with its whole rack; while it is dead; with what a dead writer left."""
EARLY: Final = {
    "long-freeze": 0.3,
    "decommission": 0.5,
    "maintain": 0.5,
    "leave-by-edit": 0.8,
    "leave-amid": 0.7,
    "leave-rack": 0.5,
    "leave-dead": 0.1,
    "leave-writer": 0.7,
}
"""In which first part of a world an event happens that takes long."""
MOVING_KINDS: Final = ("balance",)
"""Replicas are moved, to other DataNodes and to other volumes, for a while."""
NEVER: Final = 1e9
USUAL_KINDS: Final = (*NAMENODE_KINDS, *DATANODE_KINDS, *WIDE_KINDS)
EVENT_KINDS: Final = (*USUAL_KINDS, *AIMED_KINDS, *HOST_KINDS, *LEAVING_KINDS, *MOVING_KINDS)


@dataclass(frozen=True, slots=True)
class Swarm:
    """What this seed is about.

    ``java``: how many of the DataNodes are like Java's, whose deletions take up to
    ``deletion_seconds``.  ``report_seconds`` are between full reports that no NameNode has asked
    for; in most worlds there is none.  ``fenced``: the NameNode that takes over kills the former
    active. ``command_seconds``: how long DataNodes leave a command lying.  ``appending``: clients
    append and recover more than they write.  ``prepared``: whole files are there when the faults
    begin. ``recovery_seconds``: a recovery that takes longer is ordered anew. DataNodes stand on
    ``racks`` racks.  Operators take a machine away within ``late_seconds`` after an active has said
    that it may go; with any, they do so at the end of the world as well. Clients pause for up to
    ``pause_seconds``.
    """

    datanodes: int
    java: int
    volumes: int
    clients: int
    replication: int
    deletion_seconds: float
    report_seconds: float
    fenced: bool
    held: bool
    horizon: float
    rates: Mapping[str, float]
    events: Mapping[str, float]
    command_seconds: float = 0.0
    prepared: bool = False
    recovery_seconds: float = 90.0
    appending: bool = False
    racks: int = 1
    late_seconds: float = 0.0
    pause_seconds: float = 2.0

    @classmethod
    def drawn(cls, seed: int) -> "Swarm":
        """Draw the options of a seed; every other one is aimed at something."""
        usual = cls._usual(seed)
        if seed % HOSTS_EACH == HOSTS_EACH - 1 and seed not in FOUND_BEFORE:
            rng = Random(f"{seed} hosts")
            return _leaving(usual, rng) if seed % LATE_EACH != LATE_EACH - 1 else _gone(usual, rng)
        if seed % MOVING_EACH == MOVING:
            return _moving(usual, Random(f"{seed} moves"))
        if seed % 2 or seed in FOUND_BEFORE:
            return usual
        rng = Random(f"{seed} aims")
        first, second = rng.sample(AIMS, 2)
        aimed = first(usual, rng)
        return second(aimed, rng) if rng.random() < SECOND_AIM else aimed

    @classmethod
    def _usual(cls, seed: int) -> "Swarm":
        rng = Random(f"{seed} blocks")
        few = 0.4
        datanodes = rng.choice((3, 3, 4, 5))
        return cls(
            datanodes=datanodes,
            java=0,
            volumes=rng.choice((1, 1, 2)),
            clients=rng.choice((1, 2, 3)),
            replication=rng.choice((1, 2, 3, 3)),
            deletion_seconds=rng.choice((0.5, 5.0, 20.0)),
            report_seconds=rng.choice((60.0, NEVER, NEVER)),
            fenced=rng.random() < 0.4,
            held=rng.random() < 0.5,
            horizon=rng.choice((30.0, 60.0)),
            rates={
                kind: rng.choice((0.005, 0.02, 0.08)) if rng.random() < few else 0.0
                for kind in USUAL_MESSAGE_KINDS
            },
            events={
                kind: rng.uniform(0.5, 2.5) if rng.random() < few else 0.0 for kind in USUAL_KINDS
            },
        )

    def having(self, **events: float) -> "Swarm":
        """Return options with more events of these kinds (written with _), one each at least."""
        more = {kind.replace("_", "-"): rate for kind, rate in events.items()}
        return replace(self, events={**self.events, **more})

    def calmer(self, rng: Random) -> "Swarm":
        """Return, in most worlds, options without usual faults: they would end most situations
        early.
        """
        return replace(self, events={}, rates={}) if rng.random() < CALM else self


Aim = Callable[[Swarm, Random], Swarm]
FOUND_BEFORE: Final = frozenset({5062, 51, 215})
"""Seeds that have broken something, and stay as they were."""
HOSTS_EACH: Final = 4
"""In one of this number of worlds DataNodes leave."""
LATE_EACH: Final = 8
"""In one of this number of worlds they do hardly anything else."""
MOVING_EACH: Final = 16
MOVING: Final = 5
"""In one of this number of worlds, those with this rest, replicas are moved."""
SECOND_AIM: Final = 0.25
CALM: Final = 0.7


def _leaving(swarm: Swarm, rng: Random) -> Swarm:
    """DataNodes stand on racks, and leave for good or for a while, through failovers."""
    swarm = replace(
        swarm.calmer(rng),
        datanodes=rng.choice((4, 5, 6)),
        racks=rng.choice((1, 2, 2, 3)),
        replication=rng.choice((1, 2, 2, 3)),
        report_seconds=rng.choice((20.0, 60.0)),
        prepared=rng.random() < CALM,
        horizon=60.0,
    )
    swarm = swarm.having(decommission=rng.uniform(1, 3), maintain=rng.uniform(0, 2))
    match rng.randrange(5):
        case 0:
            return swarm.having(switch=rng.uniform(1, 3))
        case 1:
            return swarm.having(kill_namenode=rng.uniform(1, 2))
        case 2:
            swarm = replace(swarm, replication=3, fenced=False)
            return swarm.having(there_and_back=rng.uniform(1, 2))
        case 3:
            return replace(swarm, appending=True).having(kill_client=rng.uniform(1, 3))
        case _:
            return swarm.having(kill_datanode=rng.uniform(0, 2), shrink=rng.uniform(0, 1))


def _gone(swarm: Swarm, rng: Random) -> Swarm:
    """Few DataNodes, of which one after another goes, often as the active changes."""
    kind = rng.choice(LEAVING_KINDS)
    datanodes, replication = {
        "leave-by-edit": (3, 3),
        "leave-dead": (3, 3),
        "leave-rack": (4, 2),
        "leave-writer": (3, 1),
    }.get(kind, (rng.choice((3, 4)), rng.choice((2, 3))))
    swarm = replace(
        swarm.calmer(rng),
        datanodes=datanodes,
        racks=2 if kind == "leave-rack" else rng.choice((1, 1, 2)),
        replication=replication,
        report_seconds=rng.choice((20.0, 60.0)),
        clients=3 if kind == "leave-writer" else 1,
        pause_seconds=20.0 if kind in ("leave-amid", "leave-by-edit", "leave-dead") else 2.0,
        appending=kind == "leave-writer" or rng.random() < CALM,
        prepared=True,
        fenced=rng.random() < 0.5,
        horizon=75.0 if kind == "leave-dead" else 45.0,
        late_seconds=rng.choice((8.0, 16.0)),
    )
    kind = kind.replace("-", "_")
    if datanodes == swarm.replication:
        return swarm.having(**{kind: 1.0})  # others would have it go early
    return swarm.having(
        **{kind: rng.uniform(1, 3)}, decommission=rng.uniform(0, 1.5), switch=rng.uniform(0, 1)
    )


def _moving(swarm: Swarm, rng: Random) -> Swarm:
    """Move replicas for a balancer and a mover, while they are deleted and the active changes."""
    swarm = replace(
        swarm.calmer(rng),
        datanodes=rng.choice((3, 4, 5)),
        racks=rng.choice((1, 1, 2)),
        volumes=2,
        replication=rng.choice((1, 2, 3)),
        command_seconds=rng.choice((0.0, 2.0, 8.0)),
        prepared=True,
        horizon=45.0,
    )
    swarm = swarm.having(balance=rng.uniform(2, 5))
    match rng.randrange(4):
        case 0:
            return swarm.having(switch=rng.uniform(1, 3), shrink=rng.uniform(0, 1))
        case 1:
            return swarm.having(kill_namenode=rng.uniform(1, 2))
        case 2:
            return swarm.having(kill_datanode=rng.uniform(1, 3))
        case _:
            return swarm.having(shrink=rng.uniform(1, 2))


def _late_requests(swarm: Swarm, rng: Random) -> Swarm:
    """NameNodes take requests from their queues whose senders have gone on."""
    stranded = {kind: rng.choice((0.0, 0.02, 0.05)) for kind in STRAND_KINDS}
    rates = {**swarm.rates, **stranded, rng.choice(STRAND_KINDS[1:]): 0.4}
    java = rng.choice((0, 0, swarm.datanodes))
    swarm = replace(swarm, rates=rates, java=java, deletion_seconds=0.0, appending=True)
    swarm = replace(swarm, events={}) if rng.random() < CALM else swarm
    return replace(swarm, prepared=True).having(kill_client=rng.uniform(0, 3))


def _lost_power(swarm: Swarm, rng: Random) -> Swarm:
    """DataNodes lose what they had not synced, in the midst of writing and of recoveries."""
    swarm = replace(swarm.calmer(rng), replication=3, clients=3, recovery_seconds=5.0)
    return swarm.having(cut_power=rng.uniform(1, 4), kill_client=rng.uniform(0.5, 2))


def _dead_writers(swarm: Swarm, rng: Random) -> Swarm:
    """Recoveries, several of one block, with DataNodes that come and go."""
    swarm = replace(
        swarm.calmer(rng), clients=3, appending=True, prepared=True, recovery_seconds=5.0
    )
    rates = {**swarm.rates, "strand-commit": rng.choice((0.0, 0.5))}
    return replace(swarm, rates=rates).having(
        kill_client=rng.uniform(1, 4),
        kill_datanode=rng.uniform(0, 3),
        switch=rng.uniform(0, 1.5),
    )


def _two_terms(swarm: Swarm, rng: Random) -> Swarm:
    """Make a NameNode active, then not, then again, with orders that had not left."""
    swarm = replace(swarm.calmer(rng), replication=3, clients=1, prepared=True, fenced=False)
    return swarm.having(there_and_back=rng.uniform(1, 2))


def _slow_hands(swarm: Swarm, rng: Random) -> Swarm:
    """DataNodes leave commands lying while the active changes."""
    return replace(_two_terms(swarm, rng), command_seconds=rng.choice((2.0, 8.0)))


def _former_actives(swarm: Swarm, rng: Random) -> Swarm:
    """Let a NameNode that slept through its end go on, and DataNodes start in the meantime."""
    swarm = replace(swarm.calmer(rng), replication=3, clients=1, prepared=True, fenced=False)
    return swarm.having(ghost=rng.uniform(1, 3))


def _lease_gaps(swarm: Swarm, rng: Random) -> Swarm:
    """Take the read lease from the active for a moment in which it writes nothing."""
    swarm = replace(swarm.calmer(rng), clients=1, horizon=30.0)
    return swarm.having(nap=1.0, cut_journal=rng.uniform(0, 2))


def _long_sleeps(swarm: Swarm, rng: Random) -> Swarm:
    """Stop a NameNode for longer than DataNodes may be silent."""
    swarm = replace(swarm.calmer(rng), horizon=75.0, clients=1, fenced=False)
    return swarm.having(long_freeze=rng.uniform(1, 2))


def _from_nothing(swarm: Swarm, rng: Random) -> Swarm:
    """Everything starts anew while many files are open."""
    swarm = replace(swarm, clients=4)
    return swarm.having(restart_all=rng.uniform(1, 2), kill_client=rng.uniform(0.5, 2))


AIMS: Final[tuple[Aim, ...]] = (
    _late_requests, _lost_power, _dead_writers, _two_terms, _slow_hands, _former_actives,
    _lease_gaps, _long_sleeps, _from_nothing,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Event:
    """One planned fault."""

    at: float
    kind: str
    victim: int
    other: int
    lasts: float

    @property
    def name(self) -> str:
        """What a replay chooses it by."""
        return f"{self.kind}@{self.at:.4f}"


def plan(swarm: Swarm, rng: Random, begins: float) -> tuple[Event, ...]:
    events = [
        Event(
            at=begins + rng.uniform(0, swarm.horizon * EARLY.get(kind, 1.0)),
            kind=kind,
            victim=rng.randrange(1000),
            other=rng.randrange(1000),
            lasts=rng.choice((0.5, 3.0, 8.0, 20.0)) * (0.5 + rng.random()),
        )
        for kind in EVENT_KINDS
        for rate in (swarm.events.get(kind, 0.0),)
        for _ in range(int(rate + rng.random()) if rate else 0)
    ]
    return tuple(sorted(events, key=lambda event: event.at))
