"""Which callers may call what over Hadoop RPC, and what is written down of it."""

import pytest
from google.protobuf.message import Message

from ha.conf.keys.security import Mode
from ha.rpc import java_names as java
from ha.rpc.call_access import CallAccess
from ha.rpc.call_header import Asked
from ha.rpc.errors import RemoteFault
from ha.rpc.packets import CallKey, Detail, Status
from ha.rpc.protocol import Call, Method
from ha.rpc.session import Greeted, Hangup
from ha.security.access_control import AccessControl
from ha.security.audit_text import Outcome
from ha.security.caller import Caller, local_caller, unproven
from tests.ha.rpc.wire import CLIENT, Echo, answers
from tests.ha.security.test_unproven import Lines

ROOT = local_caller(0, 500, "127.0.0.1:1").named("root")
ALICE = local_caller(1234, 500, "127.0.0.1:2").named("alice")
NOBODY = unproven("10.0.0.9:3")
KEY = CallKey(CLIENT, 7, 0)


async def unheard(_: Call, __: Message) -> Message:
    raise NotImplementedError


PLAIN = Method(Echo, unheard)
FORCED = Method(Echo, unheard, action=lambda request: f"format {request.context}")


def asked(protocol: str, method: str, request: bytes = b"") -> Asked:
    return Asked(KEY, protocol, method, 1, request, "because")


def controlled(mode: Mode = Mode.AUTO) -> tuple[CallAccess, Lines]:
    lines = Lines()
    return CallAccess(AccessControl(mode, target="t", audit=lines, own_uid=500)), lines


MAY: dict[str, tuple[Caller | None, str, str, bool]] = {
    "root": (ROOT, java.HA_SERVICE_PROTOCOL, "monitorHealth", True),
    "a local user": (ALICE, java.HA_SERVICE_PROTOCOL, "monitorHealth", False),
    "within its rights": (ALICE, java.CLIENT_PROTOCOL, "getListing", True),
    "who proves nothing": (NOBODY, java.CLIENT_PROTOCOL, "getListing", False),
    "what is in no table": (ROOT, java.HA_SERVICE_PROTOCOL, "unheard", False),
    "a connection of which nothing is known": (None, java.CLIENT_PROTOCOL, "getListing", False),
}


@pytest.mark.parametrize(("caller", "protocol", "method", "allowed"), MAY.values(), ids=MAY)
def test_a_thread_and_the_loop_let_the_same_callers_in(
    caller: Caller | None, protocol: str, method: str, allowed: bool
) -> None:
    access, lines = controlled()
    call = asked(protocol, method)
    assert access.may(caller, call) is allowed
    assert lines.entries == [], "it is from any thread, and nothing is written"
    refusal = access.refusal(caller, call, PLAIN)
    assert (refusal is None) is allowed
    assert [entry.outcome for entry in lines.entries] == ([] if allowed else [Outcome.REFUSED])
    if refusal is not None:
        (answer,) = answers(refusal)
        said = (answer.call_id, answer.status, answer.detail, answer.java_class)
        assert said == (7, Status.ERROR, Detail.ERROR_APPLICATION, java.ACCESS_CONTROL)
    free = CallAccess(None)
    assert free.may(caller, call)
    assert free.refusal(caller, call, PLAIN) is None


@pytest.mark.parametrize("mode", [one for one in Mode if one is not Mode.INSECURE])
@pytest.mark.parametrize("face", [java.CLIENT_PROTOCOL, java.HA_SERVICE_PROTOCOL, "x"])
def test_a_connection_of_which_nothing_is_known_may_nothing_in_any_mode(
    mode: Mode, face: str
) -> None:
    access, lines = controlled(mode)
    found = access.greeted(None, Greeted("root", None, face))
    assert isinstance(found, Hangup)
    assert found.reason == "it is not known whose connection this is"
    assert not access.may(None, asked(face, "getListing"))
    assert access.refusal(None, asked(face, "getListing"), PLAIN) is not None
    assert {entry.outcome for entry in lines.entries} == {Outcome.REFUSED}
    free = CallAccess(None)
    assert free.greeted(None, Greeted("root", None, face)) is None


def test_a_call_is_judged_by_the_action_that_its_request_asks_for() -> None:
    access, lines = controlled()
    force = Echo(context="force").SerializeToString()
    protocol = "org.apache.hadoop.hdfs.qjournal.protocol.QJournalProtocol"
    assert access.refusal(ROOT, asked(protocol, "format", force), FORCED) is None
    assert access.refusal(ROOT, asked(protocol, "format", b"\xff"), FORCED) is None
    assert access.refusal(ALICE, asked(protocol, "format", force), FORCED) is not None
    assert [(entry.face, entry.action, entry.outcome) for entry in lines.entries] == [
        ("QJournalProtocol", "format force", Outcome.GRANTED),
        ("QJournalProtocol", "format", Outcome.GRANTED),
        ("QJournalProtocol", "format force", Outcome.REFUSED),
    ]


NO = RemoteFault(java.ACCESS_CONTROL, "no administrator\n\tat Foo.java")
ENDED: dict[str, tuple[str, str, Message | Exception | None, list[tuple[Outcome, str]]]] = {
    "done": (java.ZKFC_PROTOCOL, "cedeActive", Echo(), [(Outcome.DONE, "")]),
    "cut off": (java.ZKFC_PROTOCOL, "cedeActive", None, [(Outcome.UNKNOWN, "")]),
    "failed": (
        java.ZKFC_PROTOCOL, "cedeActive", RemoteFault(java.STANDBY_EXCEPTION, "late"),
        [(Outcome.FAILED, f"{java.STANDBY_EXCEPTION}: late")],
    ),
    "refused by its handler": (
        java.ZKFC_PROTOCOL, "cedeActive", NO, [(Outcome.REFUSED, "no administrator")],
    ),
    "though the table audits it not": (
        java.HA_SERVICE_PROTOCOL, "monitorHealth", NO, [(Outcome.REFUSED, "no administrator")],
    ),
    "permissions of a file": (java.CLIENT_PROTOCOL, "getListing", NO, []),
    "permissions, of what is audited": (
        java.CLIENT_PROTOCOL, "saveNamespace", NO, [(Outcome.FAILED, str(NO))],
    ),
    "in no audit": (java.HA_SERVICE_PROTOCOL, "monitorHealth", Echo(), []),
}  # fmt: skip


@pytest.mark.parametrize(("protocol", "method", "outcome", "written"), ENDED.values(), ids=ENDED)
def test_what_became_of_a_call_is_written_as_the_table_says(
    protocol: str,
    method: str,
    outcome: Message | Exception | None,
    written: list[tuple[Outcome, str]],
) -> None:
    access, lines = controlled()
    call = asked(protocol, method)
    access.ended(ROOT, call, PLAIN, outcome)
    assert [(entry.outcome, entry.reason) for entry in lines.entries] == written
    assert all(
        (one.caller, one.proto, one.face, one.action, one.context)
        == (ROOT, "rpc", protocol.rpartition(".")[2], method, "because")
        for one in lines.entries
    )
    access.ended(None, call, PLAIN, outcome)
    CallAccess(None).ended(ROOT, call, PLAIN, outcome)
    assert len(lines.entries) == len(written), "where nobody asked who, nothing is written"


@pytest.mark.parametrize(
    ("caller", "user", "found"),
    [(ALICE, "alice", "alice"), (ALICE, "root", None), (ROOT, "hdfs", "hdfs")],
    ids=["its own name", "another's", "root for anybody"],
)
def test_who_gives_itself_anothers_name_is_hung_up_on(
    caller: Caller, user: str, found: str | None
) -> None:
    access, lines = controlled()
    greeted = Greeted(user, None, "x." + "y" * 200)
    result = access.greeted(caller, greeted)
    if found is not None:
        assert result == caller.named(found)
        assert lines.entries == []
    else:
        assert isinstance(result, Hangup)
        (answer,) = answers(result.last)
        assert (answer.status, answer.detail) == (Status.FATAL, Detail.FATAL_UNAUTHORIZED)
        assert (answer.java_class, answer.message) == (java.ACCESS_CONTROL, result.reason)
        (entry,) = lines.entries
        assert (entry.outcome, entry.action, entry.face) == (Outcome.REFUSED, "connect", "y" * 100)
    assert CallAccess(None).greeted(caller, greeted) is None
