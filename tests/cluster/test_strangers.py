"""Another user of the machine asks every daemon of a running cluster for what it must not have."""

import asyncio
from collections.abc import Iterator

import pytest
from google.protobuf.message import Message

from deploy.local.cluster.cluster import Cluster, open_cluster
from ha.rpc.java_names import (
    CLIENT_DATANODE_PROTOCOL,
    DATANODE_PROTOCOL,
    HA_SERVICE_PROTOCOL,
    INTER_DATANODE_PROTOCOL,
    NAMENODE_PROTOCOL,
    ZKFC_PROTOCOL,
)
from ha.rpc.proto import zkfc_pb2 as zkfc
from hadoop.proto import client_datanode_pb2 as client
from hadoop.proto import datanode_protocol_pb2 as nodes
from hadoop.proto import inter_datanode_pb2 as inter
from hadoop.proto import namenode_protocol_pb2 as names
from tests.needs import OTHER_USER, STRANGER
from tests.security.strangers import refusal_of, standby_request, stranger

pytestmark = [pytest.mark.cluster, OTHER_USER.mark]

SECONDS = 30.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with open_cluster(tmp_path_factory.mktemp("strangers"), datanodes=1) as local:
        local.up()
        yield local
        local.down()


CALLS: dict[str, tuple[str, str, str, Message, str]] = {
    "the active is demoted by nobody": (
        "nn", HA_SERVICE_PROTOCOL, "transitionToStandby", standby_request(), "zkfc, admin",
    ),
    "no controller cedes": (
        "zkfc", ZKFC_PROTOCOL, "cedeActive", zkfc.CedeActiveRequestProto(millisToCede=1),
        "zkfc, admin",
    ),
    "no controller hands over": (
        "zkfc", ZKFC_PROTOCOL, "gracefulFailover", zkfc.GracefulFailoverRequestProto(),
        "zkfc, admin",
    ),
    "no NameNode is asked for its edits": (
        "nn", NAMENODE_PROTOCOL, "getTransactionId", names.GetTransactionIdRequestProto(),
        "namenode, admin, checkpointer",
    ),
    "nobody registers as a DataNode": (
        "nn", DATANODE_PROTOCOL, "registerDatanode", nodes.RegisterDatanodeRequestProto(),
        "datanode",
    ),
    "no replica is recovered": (
        "dn", INTER_DATANODE_PROTOCOL, "initReplicaRecovery",
        inter.InitReplicaRecoveryRequestProto(), "datanode",
    ),
    "no report is asked for": (
        "dn", CLIENT_DATANODE_PROTOCOL, "triggerBlockReport",
        client.TriggerBlockReportRequestProto(incremental=True), "admin",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CALLS)
def test_a_stranger_is_refused(cluster: Cluster, case: str) -> None:
    where, protocol, method, request, roles = CALLS[case]
    active = cluster.wait_for_active()
    ports = {
        "nn": cluster.layout.namenodes[active].rpc,
        "zkfc": cluster.layout.namenodes[active].zkfc_rpc,
        "dn": next(iter(cluster.layout.datanodes.values())).rpc,
    }
    with stranger(ports[where]) as port:
        said = asyncio.run(refusal_of(port, protocol, str(STRANGER), method, request))
        assert said.startswith(f"{method} is for {roles}; the caller is 1234 (uid 1234), ")
        said = asyncio.run(refusal_of(port, protocol, "root", method, request))
        assert said.startswith("FATAL user root is uid 0; the caller is uid 1234. ")
    assert cluster.wait_for_active() == active
