"""Which caller may do what in which mode, and under which name."""

import pytest

from ha.conf.keys.security import Mode
from ha.security import caller as security_caller
from ha.security.caller import Caller, Role, certified_caller, local_caller
from ha.security.decision import Action, Allowed, Denied, Policy, claim, decide

OWN_UID = 500
PROMOTE = Action("HAServiceProtocol", "transitionToActive")
LIST = Action("ClientProtocol", "getListing")
ROOT = local_caller(0, OWN_UID, "127.0.0.1:1")
OWN = local_caller(OWN_UID, OWN_UID, "127.0.0.1:1")
ALICE = local_caller(1234, OWN_UID, "127.0.0.1:1").named("alice")
NOBODY = security_caller.unproven("10.9.9.9:41234")
HIDDEN = security_caller.unproven("127.0.0.1:7", provable=True)
REVOKED = security_caller.refused_caller("its certificate was revoked", "10.0.0.9:1")
WRITE = Action("JournalNode", "Write")

CASES: dict[str, tuple[Mode, Caller, Action, Allowed | str]] = {
    "root may": (Mode.AUTO, ROOT, PROMOTE, Allowed(audited=True)),
    "the daemon's own user may": (Mode.STRICT, OWN, PROMOTE, Allowed(audited=True)),
    "another user lists files": (Mode.AUTO, ALICE, LIST, Allowed()),
    "another user promotes nobody": (
        Mode.AUTO, ALICE, PROMOTE,
        "transitionToActive is for zkfc, admin; the caller is alice (uid 1234), whose role is "
        "client. On this machine root and uid 500, whose daemon this is, may do it",
    ),
    "permissive holds the proven to their rights": (
        Mode.PERMISSIVE, ALICE, PROMOTE, "transitionToActive is for zkfc, admin; ",
    ),
    "who proves nothing may nothing": (
        Mode.AUTO, NOBODY, LIST, "; nothing proves who calls from 10.9.9.9:41234. ",
    ),
    "strict is no milder": (Mode.STRICT, NOBODY, PROMOTE, "nothing proves who calls"),
    "permissive lets the unproven in": (
        Mode.PERMISSIVE, NOBODY, PROMOTE, Allowed(audited=True, unproven=True),
    ),
    "permissive lets nobody in who hides a proof": (
        Mode.PERMISSIVE, HIDDEN, PROMOTE, "nothing proves who calls from 127.0.0.1:7. ",
    ),
    "insecure believes everybody": (Mode.INSECURE, NOBODY, PROMOTE, Allowed(audited=True)),
    "insecure audits no listing": (Mode.INSECURE, NOBODY, LIST, Allowed()),
    "whose proof counts for nothing hears why": (
        Mode.PERMISSIVE, REVOKED, LIST, "its certificate was revoked",
    ),
    "insecure knows no missing rows": (Mode.INSECURE, NOBODY, Action("X", "y"), Allowed()),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_who_may_do_what(case: str) -> None:
    mode, caller, action, expected = CASES[case]
    found = decide(Policy(mode, OWN_UID), caller, action)
    if isinstance(expected, str):
        assert isinstance(found, Denied)
        assert expected in found.reason
        assert found.unproven is (caller in (NOBODY, HIDDEN))
    else:
        assert found == expected


CLAIMS: dict[str, tuple[Mode, Caller, str, str | None, int | None, str]] = {
    "root may be anybody": (Mode.AUTO, ROOT, "hdfs", None, None, "hdfs"),
    "so may the daemon's own user": (Mode.STRICT, OWN, "bob", "alice", None, "bob"),
    "a user under the own name": (Mode.AUTO, ALICE, "alice", None, None, "alice"),
    "its own proxy": (Mode.AUTO, ALICE, "alice", "alice", None, "alice"),
    "a user under root's name": (
        Mode.AUTO, ALICE, "root", None, 0, "!user root is uid 0; the caller is uid 1234. ",
    ),
    "a user under a name that the machine does not know": (
        Mode.PERMISSIVE, ALICE, "hdfs", None, None,
        "!user hdfs is not alice; the caller is uid 1234. Call under your own name, alice",
    ),
    "a user who says that root stands behind it": (
        Mode.AUTO, ALICE, "alice", "root", 0, "!user root is uid 0; the caller is uid 1234. ",
    ),
    "who proves nothing": (Mode.AUTO, NOBODY, "alice", None, 7, "!nothing proves who calls"),
    "who proves nothing, in permissive": (Mode.PERMISSIVE, NOBODY, "x", None, None, "x"),
    "who hides a proof, in permissive": (
        Mode.PERMISSIVE, HIDDEN, "x", None, None, "!nothing proves who calls",
    ),
    "anybody, in insecure": (Mode.INSECURE, NOBODY, "root", None, None, "root"),
}  # fmt: skip


@pytest.mark.parametrize("case", CLAIMS)
def test_under_which_name(case: str) -> None:
    mode, caller, user, real_user, uid, expected = CLAIMS[case]
    found = claim(Policy(mode, OWN_UID), caller, user, real_user, uid)
    if expected.startswith("!"):
        assert isinstance(found, Denied)
        assert expected[1:] in found.reason
    else:
        assert isinstance(found, Caller)
        assert found.name == expected
        assert (found.roles, found.method) == (caller.roles, caller.method)


def test_a_local_caller_has_all_roles_or_one() -> None:
    assert ROOT.roles == OWN.roles == security_caller.ALL_ROLES
    assert ALICE.roles == {Role.CLIENT}
    assert NOBODY.roles == frozenset()


CERTIFIED: dict[str, tuple[Role, str, Action, str]] = {
    "its own controller promotes it": (Role.ZKFC, "nn1", PROMOTE, ""),
    "another one does not": (
        Role.ZKFC, "nn2", PROMOTE,
        "transitionToActive is for the zkfc of nn1; the caller is zkfc nn2",
    ),
    "another one demotes it": (
        Role.ZKFC, "nn2", Action("HAServiceProtocol", "transitionToStandby"), "",
    ),
    "an administrator promotes it": (Role.ADMIN, "alice", PROMOTE, ""),
    "a JournalNode does not": (
        Role.JOURNALNODE, "jn1", PROMOTE,
        "transitionToActive is for zkfc, admin; the caller is journalnode jn1",
    ),
    "a NameNode opens no file": (
        Role.NAMENODE, "nn2", LIST, "getListing is for admin, client; the caller is namenode nn2",
    ),
    "a NameNode that is not configured writes nothing": (
        Role.NAMENODE, "nn9", Action("JournalNode", "Write"),
        "Write: nn9 is no NameNode that dfs.ha.namenodes names (nn1, nn2)",
    ),
    "one that is configured writes": (
        Role.NAMENODE, "nn2", Action("JournalNode", "Write"), "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CERTIFIED)
def test_what_certificates_open(case: str) -> None:
    role, name, action, expected = CERTIFIED[case]
    policy = Policy(
        Mode.AUTO, OWN_UID, certificates=True, namenodes=frozenset({"nn1", "nn2"}), own_name="nn1"
    )
    found = decide(policy, certified_caller(role, name, "10.0.0.2:1"), action)
    assert (found.reason if isinstance(found, Denied) else "") == expected


def test_simple_clients_are_believed_on_one_protocol_alone() -> None:
    policy = Policy(Mode.STRICT, OWN_UID, certificates=True, simple_clients=True)
    named = claim(policy, NOBODY, "alice", None, None, "ClientProtocol")
    assert isinstance(named, Caller)
    assert decide(policy, named, LIST) == Allowed(unproven=True)
    assert isinstance(decide(policy, named, PROMOTE), Denied)
    assert isinstance(claim(policy, NOBODY, "alice", None, None, "ZKFCProtocol"), Denied)
    assert isinstance(decide(Policy(Mode.STRICT, OWN_UID), named, LIST), Denied)


@pytest.mark.parametrize(
    ("name", "allowed"),
    [("getReplicaVisibleLength", True), ("triggerBlockReport", False), ("getDatanodeInfo", False)],
)
def test_simple_clients_ask_a_datanode_for_a_length_alone(name: str, allowed: bool) -> None:
    """Java's client reads a file that is being written only after it has asked for its length."""
    policy = Policy(Mode.STRICT, OWN_UID, certificates=True, simple_clients=True)
    named = claim(policy, NOBODY, "blk_1_2", None, None, "ClientDatanodeProtocol")
    assert isinstance(named, Caller)
    found = decide(policy, named, Action("ClientDatanodeProtocol", name))
    assert isinstance(found, Allowed) is allowed


def test_a_clients_certificate_is_for_one_user() -> None:
    policy = Policy(Mode.AUTO, OWN_UID, certificates=True)
    alice = certified_caller(Role.CLIENT, "alice", "10.0.0.2:1")
    assert claim(policy, alice, "alice", None, None) == alice
    for user, real in (("root", None), ("alice", "root"), ("bob", "alice")):
        refused = claim(policy, alice, user, real, None)
        assert isinstance(refused, Denied)
        assert "is not alice, for whom the caller's certificate is" in refused.reason


def test_whose_proof_counts_for_nothing_has_no_name() -> None:
    for policy in (Policy(Mode.AUTO, OWN_UID), Policy(Mode.INSECURE, OWN_UID)):
        assert claim(policy, REVOKED, "alice", None, None) == Denied("its certificate was revoked")


def test_a_daemon_names_any_user_under_its_certificate() -> None:
    zkfc = certified_caller(Role.ZKFC, "nn1", "10.0.0.2:1")
    named = claim(Policy(Mode.STRICT, OWN_UID, certificates=True), zkfc, "hdfs", None, None)
    assert named == zkfc.named("hdfs")


@pytest.mark.parametrize(
    ("certificates", "simple_clients"), [(False, True), (True, False), (False, False)]
)
def test_nobody_is_believed_without_both(certificates: bool, simple_clients: bool) -> None:
    """Require certificates for all others where simple clients are let in."""
    policy = Policy(Mode.STRICT, OWN_UID, certificates=certificates, simple_clients=simple_clients)
    found = decide(policy, NOBODY, LIST)
    assert isinstance(found, Denied)
    assert found.unproven
    assert ("Call over TLS with a certificate" in found.reason) is certificates
    assert ("Call from this machine over loopback" in found.reason) is not certificates
    refused = claim(policy, NOBODY, "alice", None, None, "ClientProtocol")
    assert isinstance(refused, Denied)
    assert refused.unproven


def test_strict_demands_certificates_where_there_are_some() -> None:
    demanding = [
        (mode, certificates)
        for mode in Mode
        for certificates in (False, True)
        if Policy(mode, OWN_UID, certificates=certificates).demands_certificates
    ]
    assert demanding == [(Mode.STRICT, True)]


@pytest.mark.parametrize(
    ("policy", "advice"),
    [
        (Policy(Mode.AUTO, 0), "On this machine root may do it"),
        (Policy(Mode.AUTO, 1), "On this machine root and uid 1, whose daemon this is, may do it"),
        (
            Policy(Mode.STRICT, OWN_UID, certificates=True),
            "In strict mode it needs a certificate (nnha.security.tls.dir)",
        ),
    ],
)
def test_a_refusal_says_who_may(policy: Policy, advice: str) -> None:
    found = decide(policy, ALICE, PROMOTE)
    assert isinstance(found, Denied)
    assert found.reason.endswith(f"whose role is client. {advice}")
    assert not found.unproven


def test_who_is_proven_and_nobody_here_is_told_so() -> None:
    stranger = Caller("eve", security_caller.Method.KERBEROS, frozenset(), "10.0.0.3:1")
    found = decide(Policy(Mode.AUTO, OWN_UID), stranger, LIST)
    assert isinstance(found, Denied)
    assert "whose role is none. " in found.reason


def test_namenodes_are_compared_by_certificates_and_with_those_that_are_configured() -> None:
    known = Policy(Mode.AUTO, OWN_UID, certificates=True, namenodes=frozenset({"nn1"}))
    unknown = Policy(Mode.AUTO, OWN_UID, certificates=True)
    nn9 = certified_caller(Role.NAMENODE, "nn9", "10.0.0.9:1")
    by_kerberos = Caller(
        "nn9", security_caller.Method.KERBEROS, frozenset({Role.NAMENODE}), "10.0.0.9:1"
    )
    assert isinstance(decide(known, nn9, WRITE), Denied)
    assert isinstance(decide(known, by_kerberos, WRITE), Allowed)
    assert isinstance(decide(unknown, nn9, WRITE), Allowed)
