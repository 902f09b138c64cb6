"""Every call, page and znode that a daemon of ours serves, as the code that serves them has it."""

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Any, cast

import ha.elector
import ha.notices
from datanode.process.rpc_services import DataNodeRpcServices
from ha.daemon.http.endpoint import Endpoint
from ha.daemon.http.probes import RoleSeen
from ha.rpc.protocol import RpcProtocol
from ha.security.rights import HTTP, JOURNALNODE
from ha.service.ha_service import ha_service_protocol, zkfc_protocol
from ha.service.journal_witness import journal_witness_protocol
from ha.web.site import Site
from journal.node.faces.calls import CALLS, action_of
from journal.node.faces.hadoop_face import hadoop_protocols
from journal.node.faces.jmx import JmxPage
from journal.node.faces.transfer import SegmentServer
from journal.proto import journal_pb2 as pb
from namenode_sim.checkpoint.image_receive import ImageReceiver
from namenode_sim.datanode_protocol.service import DatanodeService
from namenode_sim.process.client_service import ClientService
from namenode_sim.transfer.image_server import ImageServer
from namenode_sim.transfer.namenode_protocol import namenode_protocol

NOTHING: Any = None
"""A protocol is a table of methods; what they work on is not needed to read it."""


def served() -> set[tuple[str, str]]:
    """Face and action of each."""
    return {*_called(), *_own_calls(), *_pages()}


def _protocols() -> Iterator[RpcProtocol]:
    client_service = ClientService(NOTHING, NOTHING, NOTHING, "hdfs", NOTHING)
    datanode = DatanodeService(NOTHING, NOTHING, NOTHING)
    yield client_service.protocol()
    yield ha_service_protocol(NOTHING)
    yield zkfc_protocol(NOTHING)
    yield journal_witness_protocol(NOTHING)
    yield namenode_protocol(NOTHING, "hdfs")
    yield datanode.protocol()
    yield datanode.lifeline()
    yield from DataNodeRpcServices(NOTHING, NOTHING, NOTHING, NOTHING).protocols()
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
    routes = (
        *SegmentServer(NOTHING, 0).routes(),
        *JmxPage(NOTHING, NOTHING, 0).routes(),
        *ImageServer(NOTHING, NOTHING).routes(),
        ImageReceiver(NOTHING, NOTHING).route(),
        *Site("ns1", NOTHING, NOTHING, frozenset()).routes(),
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
