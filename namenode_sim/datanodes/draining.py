"""Whether a DataNode of Hadoop's still carries out what a former active has ordered.

Its full report may list replicas that are about to be deleted (HDFS-16774), so that it confirms
storages only if it was asked for after all of that is done.

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
"""After this time a page that could not be had is asked for again."""

ASKED_AT_ONCE: Final = 50
"""The NameNode has other work after a failover than to read a thousand pages."""

_WAITING: Final = "SumOfActorCommandQueueLength"
_HEARTBEATS: Final = "HeartbeatsNumOps"
_PENDING: Final = "PendingAsyncDeletions"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainRules:
    """``check``: whether it is asked at all; Hadoop's NameNodes do not.

    ``quiet_seconds``: a DataNode whose page cannot be had counts as drained once it has deleted
    nothing for this time but what this NameNode had ordered.
    """

    check: bool = True
    quiet_seconds: float = 600.0


class Bean(Enum):
    """What a page is asked about, in this order: commands become deletions."""

    COMMANDS = auto()
    DELETIONS = auto()


@dataclass(frozen=True, slots=True)
class Question:
    """A DataNode whose page is to be read; the answer counts in this term and registration only."""

    of: DatanodeId
    bean: Bean
    term: int
    registrations: int


@dataclass(frozen=True, slots=True)
class Commands:
    """How many commands wait or run, and how many heartbeats were sent before that was counted."""

    waiting: int
    heartbeats: int


@dataclass(frozen=True, slots=True)
class Deletions:
    """How many replicas are still to be deleted, or are being deleted."""

    pending: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The page could not be had, or says none of this."""

    why: str


Found = Commands | Deletions | Unreadable


class Noted(Enum):
    """What an answer has changed."""

    VOID = auto()
    """The DataNode registered anew or died, or the role changed: the answer is about the past."""
    NOT_YET = auto()
    COMMANDS_DONE = auto()
    DRAINED = auto()
    UNREADABLE = auto()
    """For the first time under this claim."""


def awaits_drain(node: Node, rules: DrainRules) -> bool:
    """Return whether a report that is asked for now could list replicas that are about to go."""
    return rules.check and is_hadoops(node.software_version) and not node.drain.done


def undrained(cluster: Cluster, rules: DrainRules) -> int:
    if not cluster.is_active():
        return 0
    return sum(node.alive and awaits_drain(node, rules) for node in cluster.nodes.values())


def questions(cluster: Cluster, rules: DrainRules, now: float) -> list[Question]:
    """Return the pages to read now, those first that have waited longest.

    Only pages of DataNodes that obey this NameNode: another one may still order deletions
    elsewhere.
    """
    due = [
        node
        for node in cluster.nodes.values()
        if _is_asked(node) and awaits_drain(node, rules) and node.drain.ask_from <= now
    ]
    due.sort(key=lambda node: node.drain.ask_from)
    return [question_to(cluster, node) for node in due[:ASKED_AT_ONCE]]


def question_to(cluster: Cluster, node: Node) -> Question:
    """Return what a DataNode is to be asked next."""
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
    """Return whether no command ran when this was counted, which was after the DataNode obeyed us.

    Hadoop counts anew at most each ten seconds, so that a page may be older than the claim. One
    that shows more heartbeats than the first one is not.
    """
    if drain.first_heartbeats is None:
        drain.first_heartbeats = found.heartbeats
    return found.waiting == 0 and found.heartbeats != drain.first_heartbeats


def _end(drain: Drain) -> None:
    drain.done = True
    drain.asked.clear()


def silent_long_enough(cluster: Cluster, rules: DrainRules, now: float) -> list[Node]:
    """Have DataNodes count as drained whose pages cannot be had and which delete nothing more."""
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
    """Note which replicas this NameNode has a DataNode delete."""
    node.drain.asked.update(block_ids)


def note_deletions(node: Node, items: Iterable[tuple[int, ReplicaReport]], now: float) -> None:
    """Note whether a DataNode reports deletions that this NameNode has not ordered."""
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
    """Return the name of the bean that answers, as /jmx is asked for it.

    The deletions are those of the bean with the DataNode's uuid: the one without it counts anew
    only now and then, as that of the commands does.
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
    """Return the sum of all beans; a count that is below zero for an instant is not nothing."""
    counts = [bean[name] for bean in beans if name in bean]
    if not counts or not all(type(count) is int for count in counts):
        raise ValueError(f"no bean has the number {name}")
    return sum(map(abs, counts))
