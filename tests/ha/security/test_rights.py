"""The whole table of rights: each protocol, call, page and znode, for each role."""

import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pytest

import ha.elector
import ha.notices
from datanode.process.operator_calls import OperatorCalls
from datanode.process.rpc_services import DataNodeRpcServices
from datanode.transfers.balance_throttle import MoveRules
from datanode.transfers.moves import Moves
from ha.conf.keys.security import Mode
from ha.daemon.http.endpoint import Endpoint
from ha.daemon.http.probes import RoleSeen
from ha.rpc.java_names import RECONFIGURATION
from ha.rpc.protocol import RpcProtocol
from ha.security.caller import ALL_ROLES, Caller, Method, Role
from ha.security.decision import Action, Allowed, Policy, decide
from ha.security.rights import HTTP, JOURNALNODE, RIGHTS, ZNODES, Open, Right
from ha.service.ha_service import ha_service_protocol, zkfc_protocol
from ha.service.journal_witness import journal_witness_protocol
from ha.service.reconfiguration import Reconfiguration
from ha.web.site import Site
from journal.node.faces.calls import CALLS, action_of
from journal.node.faces.hadoop_face import hadoop_protocols
from journal.node.faces.jmx import JmxPage
from journal.node.faces.transfer import SegmentServer
from journal.proto import journal_pb2 as pb
from namenode_sim.checkpoint.image_receive import ImageReceiver
from namenode_sim.datanode_protocol.service import DatanodeService
from namenode_sim.process.balancer_service import BalancerService
from namenode_sim.process.client_service import ClientService
from namenode_sim.process.fsck_route import FsckRoute
from namenode_sim.process.listeners import LAST_HOUR
from namenode_sim.process.refresh_service import refresh_protocols
from namenode_sim.transfer.image_server import ImageServer
from namenode_sim.transfer.namenode_protocol import namenode_protocol
from namenode_sim.webhdfs.route import WebHdfsRoutes

NOTHING: Any = None
"""A protocol is a table of methods; what they work on is not needed to read it."""


def served() -> set[tuple[str, str]]:
    """Face and action of each."""
    return {*_called(), *_own_calls(), *_pages()}


def _protocols() -> Iterator[RpcProtocol]:
    client_service = ClientService(NOTHING, NOTHING, NOTHING, "hdfs", NOTHING)
    datanode = DatanodeService(NOTHING, NOTHING, NOTHING)
    yield client_service.protocol()
    yield from refresh_protocols(client_service, NOTHING)
    yield ha_service_protocol(NOTHING)
    yield zkfc_protocol(NOTHING)
    yield journal_witness_protocol(NOTHING)
    yield namenode_protocol(NOTHING, NOTHING, BalancerService(client_service.admin()).methods())
    yield datanode.protocol()
    yield datanode.lifeline()
    changes = Reconfiguration(NOTHING, (), NOTHING)
    moves = Moves(
        NOTHING, NOTHING, NOTHING, MoveRules(), "", budget=NOTHING, on_suspicion=NOTHING,
        on_damaged_source=NOTHING, access=NOTHING,
    )  # fmt: skip
    of_operators = {**OperatorCalls(NOTHING, changes, NOTHING).methods(), **moves.methods()}
    yield from DataNodeRpcServices(NOTHING, NOTHING, of_operators).protocols()
    yield RpcProtocol(RECONFIGURATION, changes.methods(NOTHING))
    yield from hadoop_protocols(NOTHING)


def _called() -> Iterator[tuple[str, str]]:
    for protocol in _protocols():
        face = protocol.name.rpartition(".")[2]
        for name, method in protocol.methods.items():
            yield face, name
            if method.action is not None:
                yield face, method.action(cast("Any", method.request)(force=True))


def _own_calls() -> Iterator[tuple[str, str]]:
    for method in pb.DESCRIPTOR.services_by_name["JournalNode"].methods:
        yield JOURNALNODE, method.name
        row = CALLS.get(method.name)
        if row is not None and "force" in row.request.DESCRIPTOR.fields_by_name:
            yield JOURNALNODE, action_of(method.name, cast("Any", row.request)(force=True))


def _pages() -> Iterator[tuple[str, str]]:
    endpoint = Endpoint(status=dict, healthy=lambda: None, role=lambda: RoleSeen("active"))
    for path in endpoint.paths:
        yield HTTP, f"GET {path}"
    yield HTTP, "GET reasons"
    yield HTTP, f"GET {LAST_HOUR}"
    routes = (
        *SegmentServer(NOTHING, 0).routes(),
        *JmxPage(NOTHING, NOTHING, 0).routes(),
        *ImageServer(NOTHING, NOTHING).routes(),
        ImageReceiver(NOTHING, NOTHING).route(),
        FsckRoute(NOTHING, NOTHING, NOTHING).route(),
        *WebHdfsRoutes(NOTHING, NOTHING, NOTHING, frozenset(), "ns1").routes(),
        *Site("ns1", NOTHING, NOTHING, frozenset(), ask=NOTHING).routes(),
    )
    for route in routes:
        yield HTTP, f"{route.method} {route.path}"


def znodes() -> set[str]:
    """Return the names below a nameservice's znode."""
    modules = (
        import_module(found.name)
        for package in (ha.elector, ha.notices)
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    )
    return {
        name
        for module in modules
        for key, name in vars(module).items()
        if key.endswith("ZNODE") and isinstance(name, str)
    }


TABLE = Path(__file__).with_name("rights.txt")
"""What each role may do, written down a second time."""

Rights = Mapping[str, Mapping[str, Right]]
Row = tuple[str, str]


def table() -> dict[Row, frozenset[str]]:
    """Return each row's roles in the file; ``anybody`` stands for callers without a proof."""
    found = {}
    for line in TABLE.read_text().splitlines():
        if line and not line.startswith("#"):
            row, _, roles = line.rpartition(":")
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
