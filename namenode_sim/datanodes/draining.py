"""Finds out when a DataNode of Hadoop's has finished the deletions that a former active ordered.

Until then its full report may list replicas that it is about to delete (HDFS-16774); so only a
report that is requested afterwards confirms its storages.

See docs/reference/datanodes.md#drained-datanodes.
"""

import json
from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import Any, Final, assert_never

from ha.record import dataclass
from namenode_sim.blocks.model import Deleted
from namenode_sim.blocks.postponed_reports import ReplicaReport
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.model import DatanodeId, Drain, Node, is_hadoops

ASK_AGAIN_SECONDS: Final = 2.0
UNREADABLE_SECONDS: Final = 30.0
"""The time after which an unreadable page is requested again."""

ASKED_AT_ONCE: Final = 50
"""Most pages that are read at once: after a failover the NameNode has other work, too."""

_WAITING: Final = "SumOfActorCommandQueueLength"
_HEARTBEATS: Final = "HeartbeatsNumOps"
_PENDING: Final = "PendingAsyncDeletions"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainRules:
    """``check``: whether pages are read at all; Hadoop's NameNodes read none.

    ``quiet_seconds``: a DataNode whose page is unreadable counts as drained once it has reported no
    deletions for this time but those that this NameNode had ordered.
    """

    check: bool = True
    quiet_seconds: float = 600.0


class Bean(Enum):
    """What is read of a page, in this order: the DataNode turns commands into deletions."""

    COMMANDS = auto()
    DELETIONS = auto()


@dataclass(frozen=True, slots=True)
class Question:
    """A page to read; the answer is valid in this term and for this registration only."""

    of: DatanodeId
    bean: Bean
    term: int
    registrations: int


@dataclass(frozen=True, slots=True)
class Commands:
    """The number of commands that wait or run, and of heartbeats sent when they were counted."""

    waiting: int
    heartbeats: int


@dataclass(frozen=True, slots=True)
class Deletions:
    """The number of replicas whose deletion waits or is under way."""

    pending: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The page was not served, or lacks these numbers."""

    why: str


Found = Commands | Deletions | Unreadable


class Noted(Enum):
    """The effect of an answer."""

    VOID = auto()
    """The DataNode registered anew or died, or the role changed since the question."""
    NOT_YET = auto()
    COMMANDS_DONE = auto()
    DRAINED = auto()
    UNREADABLE = auto()
    """For the first time in this term."""


def awaits_drain(node: Node, rules: DrainRules) -> bool:
    """Return whether a full report requested now could list replicas about to be deleted."""
    return rules.check and is_hadoops(node.software_version) and not node.drain.done


def undrained(cluster: Cluster, rules: DrainRules) -> int:
    if not cluster.is_active():
        return 0
    return sum(node.alive and awaits_drain(node, rules) for node in cluster.nodes.values())


def questions(cluster: Cluster, rules: DrainRules, now: float) -> list[Question]:
    """Return the pages to read now, the longest due first.

    Only of DataNodes that obey this NameNode: others may still get deletions from a former active.
    """
    due = [
        node
        for node in cluster.nodes.values()
        if _is_asked(node) and awaits_drain(node, rules) and node.drain.ask_from <= now
    ]
    due.sort(key=lambda node: node.drain.ask_from)
    return [question_to(cluster, node) for node in due[:ASKED_AT_ONCE]]


def question_to(cluster: Cluster, node: Node) -> Question:
    """Return the next question to a DataNode."""
    bean = Bean.DELETIONS if node.drain.commands_done else Bean.COMMANDS
    return Question(node.id, bean, cluster.term, node.registrations)


def _is_asked(node: Node) -> bool:
    return node.alive and not node.must_register and node.obeys


def note(cluster: Cluster, question: Question, found: Found, now: float) -> Noted:
    node = cluster.nodes.get(question.of.uuid)
    if node is None or not _is_asked(node) or question != question_to(cluster, node):
        return Noted.VOID
    drain = node.drain
    was_readable, drain.page_unreadable = not drain.page_unreadable, isinstance(found, Unreadable)
    drain.ask_from = now + (UNREADABLE_SECONDS if drain.page_unreadable else ASK_AGAIN_SECONDS)
    match found:
        case Unreadable():
            return Noted.UNREADABLE if was_readable else Noted.NOT_YET
        case Commands():
            drain.commands_done = _all_done(drain, found)
            return Noted.COMMANDS_DONE if drain.commands_done else Noted.NOT_YET
        case Deletions(pending=pending):
            if pending or not drain.commands_done:
                return Noted.NOT_YET
            _end(drain)
            return Noted.DRAINED
        case _:
            assert_never(found)


def _all_done(drain: Drain, found: Commands) -> bool:
    """Return whether no command waited or ran, at a time when the DataNode obeyed us already.

    Hadoop renews these numbers at most every ten seconds, so that the first page may be older than
    our term.  A page with another number of heartbeats than the first one is newer.
    """
    if drain.first_heartbeats is None:
        drain.first_heartbeats = found.heartbeats
    return found.waiting == 0 and found.heartbeats != drain.first_heartbeats


def _end(drain: Drain) -> None:
    drain.done = True
    drain.asked.clear()


def silent_long_enough(cluster: Cluster, rules: DrainRules, now: float) -> list[Node]:
    """Mark DataNodes with unreadable pages as drained if they are quiet; return these."""
    found = [
        node
        for node in cluster.nodes.values()
        if _is_asked(node)
        and awaits_drain(node, rules)
        and node.drain.page_unreadable
        and now >= node.drain.quiet_since + rules.quiet_seconds
    ]
    for node in found:
        _end(node.drain)
    return found


def note_orders(node: Node, block_ids: Iterable[int]) -> None:
    """Add the replicas whose deletion this NameNode orders from a DataNode."""
    node.drain.asked.update(block_ids)


def note_deletions(node: Node, items: Iterable[tuple[int, ReplicaReport]], now: float) -> None:
    """Restart the quiet time if a DataNode reports deletions that this NameNode did not order."""
    drain = node.drain
    if drain.done:
        return
    for block_id, told in items:
        if not isinstance(told, Deleted):
            continue
        if block_id in drain.asked:
            drain.asked.discard(block_id)
        else:
            drain.quiet_since = now


# ---- the page ----


def query_of(question: Question) -> str:
    """Return the name of the bean that answers, for the query of /jmx.

    Deletions come from the bean with the DataNode's uuid, which is always up to date; Hadoop renews
    the numbers of the bean without it, as those of the commands, only every ten seconds.
    """
    who = question.of
    match question.bean:
        case Bean.COMMANDS:
            return f"Hadoop:service=DataNode,name=DataNodeActivity-*-{who.transfer_port}"
        case Bean.DELETIONS:
            return f"Hadoop:service=DataNode,name=FSDatasetState-{who.uuid}"
        case _:
            assert_never(question.bean)


def read(bean: Bean, page: bytes) -> Found:
    try:
        beans = _beans(page)
        match bean:
            case Bean.COMMANDS:
                return Commands(_total(beans, _WAITING), _total(beans, _HEARTBEATS))
            case Bean.DELETIONS:
                return Deletions(_total(beans, _PENDING))
            case _:
                assert_never(bean)
    except (ValueError, RecursionError) as problem:
        return Unreadable(str(problem))


def _beans(page: bytes) -> Sequence[dict[str, Any]]:
    found = json.loads(page)
    beans = found.get("beans") if isinstance(found, dict) else None
    if not isinstance(beans, list) or not all(isinstance(bean, dict) for bean in beans):
        raise ValueError("it has no list of beans")
    return beans


def _total(beans: Sequence[dict[str, Any]], name: str) -> int:
    """Return the sum over all beans; Hadoop's counts can be below 0 for an instant."""
    counts = [bean[name] for bean in beans if name in bean]
    if not counts or not all(type(count) is int for count in counts):
        raise ValueError(f"no bean has the number {name}")
    return sum(map(abs, counts))
