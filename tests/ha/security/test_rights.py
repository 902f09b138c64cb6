"""The whole table of rights: each protocol, call, page and znode, for each role."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from ha.conf.keys.security import Mode
from ha.security.caller import ALL_ROLES, Caller, Method, Role
from ha.security.decision import Action, Allowed, Policy, decide
from ha.security.rights import RIGHTS, ZNODES, Open, Right
from tests.ha.security.catalogue import served, znodes

TABLE = Path(__file__).with_name("rights.txt")
"""What each role may do, written down a second time."""

Rights = Mapping[str, Mapping[str, Right]]
Row = tuple[str, str]


def table() -> dict[Row, frozenset[str]]:
    """Return each row's roles in the file; ``anybody`` stands for callers without a proof."""
    found = {}
    for line in TABLE.read_text().splitlines():
        if line and not line.startswith("#"):
            row, _, roles = line.partition(":")
            face, _, name = row.partition(" ")
            found[face, name] = frozenset(roles.split())
    return found


def differences(rights: Rights) -> list[str]:
    """Return where the decision and the file disagree, role by role."""
    policy = Policy(Mode.STRICT, 0, rights)
    wanted, found = table(), []
    for face, name in sorted({*wanted, *((f, n) for f, rows in rights.items() for n in rows)}):
        roles = wanted.get((face, name), frozenset())
        expected = {str(role) for role in ALL_ROLES} if "all" in roles else roles
        for caller, who in ((with_role(role), str(role)) for role in Role):
            may = isinstance(decide(policy, caller, Action(face, name)), Allowed)
            if may != (who in expected or "anybody" in roles or "local" in roles):
                found.append(f"{face} {name}: {who} {'may' if may else 'may not'}")
        nobody = Caller("", Method.SIMPLE, frozenset(), "10.9.9.9:1")
        may = isinstance(decide(policy, nobody, Action(face, name)), Allowed)
        if may != ("anybody" in roles):
            found.append(f"{face} {name}: who proves nothing {'may' if may else 'may not'}")
    return found


def with_role(role: Role) -> Caller:
    return Caller("u", Method.PEER_UID, frozenset({role}), "127.0.0.1:1", 1234)


def test_every_role_may_do_what_the_file_says_and_nothing_else() -> None:
    assert differences(RIGHTS) == []


def test_the_table_names_exactly_what_is_served() -> None:
    named = {(face, name) for face, rows in RIGHTS.items() for name in rows}
    assert named - served() == set(), "rights to what nobody serves"
    assert served() - named == set(), "served, and nobody may call it"


def test_every_znode_has_its_rights() -> None:
    assert set(ZNODES) == znodes()
    for rights in ZNODES.values():
        assert rights == {Role.ZKFC: "rwcda", Role.ADMIN: "rwcda", Role.OPERATOR: "r"}


def without(face: str, name: str) -> Rights:
    return {**RIGHTS, face: {row: right for row, right in RIGHTS[face].items() if row != name}}


def with_right(face: str, name: str, right: Right) -> Rights:
    return {**RIGHTS, face: {**RIGHTS[face], name: right}}


PLANTED: dict[str, tuple[Rights, str]] = {
    "a row is missing": (
        without("HAServiceProtocol", "transitionToActive"),
        "HAServiceProtocol transitionToActive: zkfc may not",
    ),
    "a row is too wide by one role": (
        with_right("JournalNode", "NewEpoch", Right(frozenset({Role.NAMENODE, Role.CLIENT}))),
        "JournalNode NewEpoch: client may",
    ),
    "a page is open": (
        with_right("HTTP", "GET /getJournal", Right(frozenset(), open=Open.TO_ALL)),
        "HTTP GET /getJournal: who proves nothing may",
    ),
    "a row that nobody asked for": (
        with_right("ClientProtocol", "becomeRoot", Right(ALL_ROLES)),
        "ClientProtocol becomeRoot: client may",
    ),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str) -> None:
    rights, said = PLANTED[bug]
    assert said in differences(rights)


def test_what_the_table_does_not_name_is_denied_to_root_too() -> None:
    root = Caller("root", Method.PEER_UID, ALL_ROLES, "127.0.0.1:1", 0)
    for action in (Action("HAServiceProtocol", "selfDestruct"), Action("NoProtocol", "x")):
        decided = decide(Policy(Mode.AUTO, 0), root, action)
        assert "stands in no row of the table of rights" in getattr(decided, "reason", "")
