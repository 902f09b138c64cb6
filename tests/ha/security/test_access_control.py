"""A decision that is kept is the decision that would be taken again."""

import itertools

import pytest

from ha.conf.keys.security import Mode
from ha.security import caller as callers
from ha.security.access_control import AccessControl
from ha.security.audit_rate import QUIET_SECONDS
from ha.security.decision import Action, Denied, decide
from ha.security.rights import RIGHTS
from tests.ha.security.test_unproven import Lines

OWN_UID = 500
CALLERS = {
    "root": callers.local_caller(0, OWN_UID, "127.0.0.1:1"),
    "another user": callers.local_caller(1234, OWN_UID, "127.0.0.1:2").named("alice"),
    "nobody": callers.unproven("10.9.9.9:3"),
    "who hides": callers.unproven("127.0.0.1:4", provable=True),
    "our NameNode": callers.certified_caller(callers.Role.NAMENODE, "nn1", "10.0.0.1:5"),
    "another NameNode": callers.certified_caller(callers.Role.NAMENODE, "nn9", "10.0.0.9:6"),
    "a controller": callers.certified_caller(callers.Role.ZKFC, "nn1", "10.0.0.1:7"),
    "who was revoked": callers.refused_caller("its certificate was revoked", "10.0.0.1:8"),
}


@pytest.mark.parametrize("mode", Mode)
def test_asked_three_times_by_all_callers_in_turns(mode: Mode) -> None:
    lines = Lines()
    access = AccessControl(
        mode, target="t", audit=lines, own_uid=OWN_UID, namenodes=frozenset({"nn1", "nn2"}),
        clock=itertools.count(0.0, QUIET_SECONDS).__next__,
    )  # fmt: skip
    for _ in range(3):
        for face, names in (*RIGHTS.items(), ("Nobody", {"asks": None})):
            for name in names:
                for caller in CALLERS.values():
                    agree(access, caller, face, name, lines)


def agree(
    access: AccessControl, caller: callers.Caller, face: str, name: str, lines: Lines
) -> None:
    decided = decide(access.policy, caller, Action(face, name))
    allowed = not isinstance(decided, Denied)
    before = len(lines.entries)
    refused = access.refusal(caller, "rpc", face, name)
    assert (refused is None, access.may(caller, face, name)) == (allowed, allowed)
    if not isinstance(decided, Denied):
        assert len(lines.entries) - before == decided.audited
