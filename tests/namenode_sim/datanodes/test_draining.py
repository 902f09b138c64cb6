"""When a DataNode of Hadoop's has carried out all that a former active has ordered."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from random import Random

import pytest

from namenode_sim.blocks.model import Deleted, ReplicaState, Reported
from namenode_sim.blocks.postponed_reports import ReplicaReport
from namenode_sim.blocks.state import BlockState
from namenode_sim.datanodes import draining
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.draining import Commands, Noted, Unreadable, question_to, questions
from namenode_sim.datanodes.model import DatanodeId, Drain, Node

RULES = draining.DrainRules(quiet_seconds=600.0)
UNCHECKED = draining.DrainRules(check=False)
NOW = 5000.0
AGAIN, FOR_LONG = 2.0, 30.0


def hadoops(name: str = "a", *, drain: Drain | None = None, version: str = "3.5.0") -> Node:
    node = Node(DatanodeId(name, "10.0.0.1", name, 9866, 9864, 9867), version, NOW)
    node.told_active = node.obeys = True
    node.registrations = 3
    node.drain = drain or Drain()
    return node


def cluster(*nodes: Node) -> Cluster:
    made = Cluster("BP-1", BlockState(), Random(1))
    made.term = 7
    made.nodes.update({node.id.uuid: node for node in nodes})
    return made


# ---- which DataNodes are asked, what, and when ----

AWAITED: dict[str, tuple[str, Drain, draining.DrainRules, bool]] = {
    "Hadoop's": ("3.5.0", Drain(), RULES, True),
    "its commands are done": ("3.5.0", Drain(commands_done=True), RULES, True),
    "its page cannot be had": ("3.5.0", Drain(page_unreadable=True), RULES, True),
    "drained": ("3.5.0", Drain(done=True), RULES, False),
    "ours": ("3.5.0-nnha", Drain(), RULES, False),
    "switched off": ("3.5.0", Drain(), UNCHECKED, False),
}


@pytest.mark.parametrize(
    ("version", "drain", "rules", "awaited"), AWAITED.values(), ids=AWAITED.keys()
)
def test_hadoops_are_waited_for_until_they_are_drained(
    version: str, drain: Drain, rules: draining.DrainRules, awaited: bool
) -> None:
    node = hadoops(drain=drain, version=version)
    assert draining.awaits_drain(node, rules) is awaited
    assert questions(cluster(node), rules, NOW) == (
        [question_to(cluster(node), node)] if awaited else []
    )


@pytest.mark.parametrize(
    ("alive", "must_register", "obeys"), list(product((False, True), repeat=3))
)
def test_only_who_lives_is_registered_and_obeys_is_looked_at(
    alive: bool, must_register: bool, obeys: bool
) -> None:
    """Another one may still be ordered about by the former active."""
    node = hadoops(drain=Drain(page_unreadable=True))
    node.alive, node.must_register, node.obeys = alive, must_register, obeys
    here = cluster(node)
    question = question_to(here, node)
    looked_at = alive and not must_register and obeys
    assert questions(here, RULES, NOW) == ([question] if looked_at else [])
    assert draining.silent_long_enough(here, RULES, NOW) == ([node] if looked_at else [])
    assert node.drain.done is looked_at
    void = draining.note(here, question, Commands(0, 6), NOW) is Noted.VOID
    assert void is not looked_at


ASKED = {
    "at first": (Drain(), draining.Bean.COMMANDS),
    "as long as its page cannot be had": (Drain(page_unreadable=True), draining.Bean.COMMANDS),
    "once its commands are done": (Drain(commands_done=True), draining.Bean.DELETIONS),
}


@pytest.mark.parametrize(("drain", "bean"), ASKED.values(), ids=ASKED.keys())
def test_commands_are_asked_about_before_deletions(drain: Drain, bean: draining.Bean) -> None:
    node = hadoops(drain=drain)
    assert question_to(cluster(node), node) == draining.Question(
        node.id, bean, term=7, registrations=3
    )


def test_fifty_are_asked_at_once_those_first_that_have_waited_longest() -> None:
    nodes = [hadoops(f"n{number}", drain=Drain(ask_from=NOW - number)) for number in range(60)]
    asked = [question.of for question in questions(cluster(*nodes), RULES, NOW)]
    assert asked == [node.id for node in reversed(nodes)][:50]


PAUSES: dict[str, tuple[Drain, draining.Found, float]] = {
    "commands wait": (Drain(), Commands(1, 5), AGAIN),
    "deletions wait": (Drain(commands_done=True), draining.Deletions(1), AGAIN),
    "the page can be had again": (Drain(page_unreadable=True), Commands(1, 5), AGAIN),
    "the page cannot be had": (Drain(), Unreadable("refused"), FOR_LONG),
    "it still cannot be had": (Drain(page_unreadable=True), Unreadable("refused"), FOR_LONG),
}


@pytest.mark.parametrize(("drain", "found", "seconds"), PAUSES.values(), ids=PAUSES.keys())
def test_when_a_page_is_asked_for_again(
    drain: Drain, found: draining.Found, seconds: float
) -> None:
    node = hadoops(drain=replace(drain))
    here = cluster(node)
    question = question_to(here, node)
    draining.note(here, question, found, NOW)
    assert questions(here, RULES, NOW + seconds - 0.1) == []
    assert questions(here, RULES, NOW + seconds) == [question]


# ---- what an answer changes ----

ANSWERS: dict[str, tuple[Drain, draining.Found, Noted, Drain]] = {
    "a command waits": (
        Drain(), Commands(1, 5), Noted.NOT_YET, Drain(first_heartbeats=5)),
    "none waits, but that may have been counted before it obeyed": (
        Drain(), Commands(0, 5), Noted.NOT_YET, Drain(first_heartbeats=5)),
    "the same count once more": (
        Drain(first_heartbeats=5), Commands(0, 5), Noted.NOT_YET, Drain(first_heartbeats=5)),
    "a newer count, and one waits": (
        Drain(first_heartbeats=5), Commands(1, 6), Noted.NOT_YET, Drain(first_heartbeats=5)),
    "a newer count, and none waits": (
        Drain(first_heartbeats=5), Commands(0, 6), Noted.COMMANDS_DONE,
        Drain(first_heartbeats=5, commands_done=True)),
    "it counts from the start again": (
        Drain(first_heartbeats=5), Commands(0, 4), Noted.COMMANDS_DONE,
        Drain(first_heartbeats=5, commands_done=True)),
    "a deletion waits": (
        Drain(commands_done=True), draining.Deletions(1), Noted.NOT_YET, Drain(commands_done=True)),
    "no deletion waits": (
        Drain(commands_done=True, asked={8}), draining.Deletions(0), Noted.DRAINED,
        Drain(commands_done=True, done=True)),
    "no deletion waits, but a command may bring some": (
        Drain(), draining.Deletions(0), Noted.NOT_YET, Drain()),
    "the page cannot be had": (
        Drain(), Unreadable("refused"), Noted.UNREADABLE, Drain(page_unreadable=True)),
    "that of the deletions cannot": (
        Drain(commands_done=True), Unreadable("refused"), Noted.UNREADABLE,
        Drain(commands_done=True, page_unreadable=True)),
    "it still cannot be had": (
        Drain(page_unreadable=True), Unreadable("refused"), Noted.NOT_YET,
        Drain(page_unreadable=True)),
    "it can be had again": (
        Drain(page_unreadable=True), Commands(1, 5), Noted.NOT_YET, Drain(first_heartbeats=5)),
}  # fmt: skip


@pytest.mark.parametrize(("before", "found", "noted", "then"), ANSWERS.values(), ids=ANSWERS.keys())
def test_what_a_page_proves(
    before: Drain, found: draining.Found, noted: Noted, then: Drain
) -> None:
    node = hadoops(drain=replace(before, asked=set(before.asked)))
    here = cluster(node)
    assert draining.note(here, question_to(here, node), found, NOW) is noted
    assert replace(node.drain, ask_from=0.0) == then


def _commands_done(_: Cluster, node: Node) -> None:
    node.drain.commands_done = True


def _registered(_: Cluster, node: Node) -> None:
    node.registrations += 1


def _moved(_: Cluster, node: Node) -> None:
    node.id = replace(node.id, transfer_port=1)


def _replaced(here: Cluster, node: Node) -> None:
    del here.nodes[node.id.uuid]


def _role_changed(here: Cluster, _: Node) -> None:
    here.term += 1


CHANGES: dict[str, Callable[[Cluster, Node], None]] = {
    "its commands are known to be done": _commands_done,
    "it has registered anew": _registered,
    "it has moved": _moved,
    "another one has its address": _replaced,
    "the role has changed": _role_changed,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_an_answer_about_the_past_changes_nothing(change: Callable[[Cluster, Node], None]) -> None:
    node = hadoops(drain=Drain(first_heartbeats=5))
    here = cluster(node)
    question = question_to(here, node)
    change(here, node)
    before = replace(node.drain)
    assert draining.note(here, question, Commands(0, 6), NOW) is Noted.VOID
    assert node.drain == before


# ---- without a page ----

SILENCE: dict[str, tuple[Drain, float, bool]] = {
    "for long": (Drain(page_unreadable=True, quiet_since=100.0, ask_from=900.0), 700.0, True),
    "nearly for long": (Drain(page_unreadable=True, quiet_since=100.0), 699.9, False),
    "for long, but its page can be had": (Drain(quiet_since=100.0), 700.0, False),
    "for long, and commands are done": (
        Drain(commands_done=True, quiet_since=100.0), 700.0, False),
    "it is drained already": (
        Drain(done=True, page_unreadable=True, quiet_since=100.0), 700.0, False),
}  # fmt: skip


@pytest.mark.parametrize(("drain", "now", "ends"), SILENCE.values(), ids=SILENCE.keys())
def test_silence_stands_for_a_page_that_cannot_be_had(drain: Drain, now: float, ends: bool) -> None:
    node = hadoops(drain=replace(drain, asked={8}))
    assert draining.silent_long_enough(cluster(node), RULES, now) == ([node] if ends else [])
    assert node.drain.done is (ends or drain.done)
    assert node.drain.asked == (set() if ends else {8})


def test_nobody_is_drained_by_silence_where_it_is_switched_off() -> None:
    node = hadoops(drain=Drain(page_unreadable=True))
    assert draining.silent_long_enough(cluster(node), UNCHECKED, NOW) == []


GONE, HERE = Deleted(1001), Reported(ReplicaState.FINALIZED, 1001, 10)
ORDERED, OTHER = 8, 9
TOLD: dict[str, tuple[list[tuple[int, ReplicaReport]], set[int], bool]] = {
    "nothing": ([], {ORDERED}, False),
    "what we have ordered is gone": ([(ORDERED, GONE)], set(), False),
    "it is gone once more": ([(ORDERED, GONE), (ORDERED, GONE)], set(), True),
    "what we have not ordered is gone": ([(OTHER, GONE)], {ORDERED}, True),
    "both are gone": ([(OTHER, GONE), (ORDERED, GONE)], set(), True),
    "what it has": ([(OTHER, HERE), (ORDERED, HERE)], {ORDERED}, False),
    "what it has, then what is gone": ([(ORDERED, HERE), (OTHER, GONE)], {ORDERED}, True),
}
UNDRAINED = {
    "at first": Drain(quiet_since=100.0),
    "its commands are done": Drain(quiet_since=100.0, commands_done=True),
    "its page cannot be had": Drain(quiet_since=100.0, page_unreadable=True),
}


@pytest.mark.parametrize("drain", UNDRAINED.values(), ids=UNDRAINED.keys())
@pytest.mark.parametrize(("items", "left", "ends_silence"), TOLD.values(), ids=TOLD.keys())
def test_a_deletion_that_we_have_not_ordered_ends_the_silence(
    items: list[tuple[int, ReplicaReport]], left: set[int], ends_silence: bool, drain: Drain
) -> None:
    node = hadoops(drain=replace(drain, asked=set()))
    draining.note_orders(node, [ORDERED])
    draining.note_deletions(node, items, NOW)
    assert node.drain.asked == left
    assert node.drain.quiet_since == (NOW if ends_silence else 100.0)


def test_the_deletions_of_one_that_is_drained_are_not_watched() -> None:
    node = hadoops(drain=Drain(done=True, quiet_since=100.0))
    draining.note_deletions(node, [(OTHER, GONE)], NOW)
    assert node.drain == Drain(done=True, quiet_since=100.0)
