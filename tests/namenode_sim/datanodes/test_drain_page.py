"""What is read of a page of Hadoop's DataNode, and what of it says nothing."""

import json

import pytest

from namenode_sim.datanodes import draining
from namenode_sim.datanodes.draining import Bean, Commands, Unreadable, read
from namenode_sim.datanodes.model import DatanodeId

WHO = DatanodeId("u-1", "10.0.0.1", "host", 9866, 9864, 9867)
QUERIES = {
    Bean.COMMANDS: "Hadoop:service=DataNode,name=DataNodeActivity-*-9866",
    Bean.DELETIONS: "Hadoop:service=DataNode,name=FSDatasetState-u-1",
}


@pytest.mark.parametrize("bean", QUERIES)
def test_which_bean_is_asked_for(bean: Bean) -> None:
    assert draining.query_of(draining.Question(WHO, bean, term=1, registrations=1)) == QUERIES[bean]


def page(*beans: object) -> bytes:
    return json.dumps({"beans": beans}).encode()


def activity(commands: object, heartbeats: object = 7) -> dict[str, object]:
    return {"SumOfActorCommandQueueLength": commands, "HeartbeatsNumOps": heartbeats}


NAMELESS = {"name": "Hadoop:service=DataNode,name=JvmMetrics"}
NO_LIST, NO_NUMBER = Unreadable("it has no list of beans"), "no bean has the number "
NO_COMMANDS = Unreadable(NO_NUMBER + "SumOfActorCommandQueueLength")

ACTIVITIES: dict[str, tuple[bytes, draining.Found]] = {
    "idle": (page(activity(0)), Commands(0, 7)),
    "at work": (page(activity(2)), Commands(2, 7)),
    "of two processes": (page(activity(2, 7), activity(3, 8)), Commands(5, 15)),
    "below zero for an instant": (page(activity(-1), activity(1)), Commands(2, 14)),
    "beside another bean": (page(NAMELESS, activity(2)), Commands(2, 7)),
    "only another bean": (page(NAMELESS), NO_COMMANDS),
    "no bean": (page(), NO_COMMANDS),
    "a word": (page(activity("0")), NO_COMMANDS),
    "a truth": (page(activity(commands=True)), NO_COMMANDS),
    "a number and a word": (page(activity(2), activity("3")), NO_COMMANDS),
    "one number of the two": (
        page({"SumOfActorCommandQueueLength": 0}), Unreadable(NO_NUMBER + "HeartbeatsNumOps")),
    "a number for a bean": (page(activity(0), 1), NO_LIST),
    "an object for the list": (b'{"beans": {"a": 1}}', NO_LIST),
    "nothing for the list": (b'{"beans": null}', NO_LIST),
    "no list": (b"{}", NO_LIST),
    "no object": (b"[]", NO_LIST),
}  # fmt: skip


@pytest.mark.parametrize(("given", "found"), ACTIVITIES.values(), ids=ACTIVITIES.keys())
def test_the_commands_of_a_page(given: bytes, found: draining.Found) -> None:
    assert read(Bean.COMMANDS, given) == found


def test_the_deletions_of_a_page() -> None:
    assert read(Bean.DELETIONS, page({"PendingAsyncDeletions": 3})) == draining.Deletions(3)
    assert read(Bean.DELETIONS, page(activity(0))) == Unreadable(
        NO_NUMBER + "PendingAsyncDeletions"
    )


NO_JSON = {
    "nothing": (b"", "Expecting value"),
    "a page for people": (b"<html>", "Expecting value"),
    "no text": (b"\xff\xfe\x00", "decode"),
    "deeper than can be read": (b"[" * 100_000, "recursion"),
    "a number without an end": (b'{"beans": ' + b"9" * 5000 + b"}", "5000 digits"),
}


@pytest.mark.parametrize("bean", Bean)
@pytest.mark.parametrize(("given", "why"), NO_JSON.values(), ids=NO_JSON.keys())
def test_what_is_no_json_says_nothing(given: bytes, why: str, bean: Bean) -> None:
    found = read(bean, given)
    assert isinstance(found, Unreadable)
    assert why in found.why
