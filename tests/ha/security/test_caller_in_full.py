"""How refusals and audit lines name callers that a ticket or a token proves."""

import pytest

from ha.security.audit_text import Entry, Outcome, fields, hadoop_line
from ha.security.caller import Caller, Method

TICKET = Caller("alice", Method.KERBEROS, frozenset(), "10.0.0.1:5", principal="alice@R")
FOR_BOB = Caller(
    "bob", Method.KERBEROS, frozenset(), "10.0.0.1:5", principal="alice@R", real="alice"
)
TOKEN = Caller("alice", Method.TOKEN, frozenset(), "10.0.0.1:5", principal="AAVhbGljZQ==")
CALLERS = {
    "alice@R (auth:KERBEROS)": TICKET,
    "bob (auth:PROXY) via alice@R (auth:KERBEROS)": FOR_BOB,
    "alice (auth:TOKEN)": TOKEN,
}


@pytest.mark.parametrize(("said", "caller"), CALLERS.items(), ids=CALLERS)
def test_names_are_those_of_hadoop(said: str, caller: Caller) -> None:
    assert str(caller) == said
    entry = Entry(Outcome.REFUSED, caller, "rpc", "ClientProtocol", "delete", "namenode@h:1")
    assert f"\tugi={said}\t" in hadoop_line(entry, "now")
    assert fields(entry)["ugi"] == said


def test_one_user_has_one_share_however_many_tokens_it_has() -> None:
    other = Caller("alice", Method.TOKEN, frozenset(), "10.0.0.2:6", principal="AAVib2I=")
    assert TOKEN.owner == other.owner
