"""A directory that does not answer: its silence puts a caller on no list, and past none."""

import threading

import pytest

from ha.rpc.java_names import CLIENT_PROTOCOL
from ha.security.caller import Caller, Method, Role
from ha.security.kerberos.admission import Admission
from ha.security.lists import access_list
from ha.security.lists.access_list import AccessList, groups_here

ALICE = Caller("alice", Method.KERBEROS, frozenset(), "10.0.0.1:5", principal="alice@R")
BLOCKED = "security.client.protocol.acl.blocked"


async def silent(_: str) -> frozenset[str]:
    raise TimeoutError("no answer in time")


async def test_whose_groups_are_not_known_is_no_administrator_and_may_go_on() -> None:
    lists = Admission(administrators=AccessList.parse(" wheel"), groups_of=silent)
    found = await lists.admit(ALICE, "alice", CLIENT_PROTOCOL)
    assert isinstance(found, Caller)
    assert found.roles == {Role.CLIENT}


async def test_whose_groups_are_not_known_passes_no_list_that_keeps_a_group_out() -> None:
    lists = Admission(policy={BLOCKED: " guests"}, groups_of=silent)
    with pytest.raises(TimeoutError):
        await lists.admit(ALICE, "alice", CLIENT_PROTOCOL)


async def test_silence_of_the_directory_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    there = threading.Event()
    monkeypatch.setattr("pwd.getpwnam", lambda _: there.wait())
    monkeypatch.setattr(access_list, "GROUPS_DEADLINE_SECONDS", 0.05)
    try:
        with pytest.raises(TimeoutError, match="groups of alice are not known"):
            await groups_here("alice")
    finally:
        there.set()
