"""Another user of the machine asks every daemon of a running cluster for what it must not have."""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from urllib.request import urlopen

import pytest
from google.protobuf.message import Message
from kazoo.client import KazooClient

from deploy.local.cluster.cluster import Cluster, open_cluster
from deploy.local.cluster.processes import wait_until
from ha.conf.topology import HostPort
from ha.elector.zookeeper.breadcrumb import ActiveNodeInfo, encode
from ha.rpc.client import call_once
from ha.rpc.java_names import (
    CLIENT_DATANODE_PROTOCOL,
    CLIENT_PROTOCOL,
    DATANODE_PROTOCOL,
    HA_SERVICE_PROTOCOL,
    INTER_DATANODE_PROTOCOL,
    NAMENODE_PROTOCOL,
    ZKFC_PROTOCOL,
)
from ha.rpc.packets import PREAMBLE
from ha.rpc.proto import zkfc_pb2 as zkfc
from hadoop.proto import client_datanode_pb2 as client
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import data_transfer_pb2 as data
from hadoop.proto import datanode_protocol_pb2 as nodes
from hadoop.proto import hdfs_types_pb2 as hdfs
from hadoop.proto import inter_datanode_pb2 as inter
from hadoop.proto import namenode_protocol_pb2 as names
from hadoop.wire.packets import Op
from tests.cluster.flood_scene import (
    fails_over_in_a_flood,
    grpc_ports,
    http_ports,
    lane_ports,
    rpc_ports,
)
from tests.datanode.block_client import Place, ask
from tests.needs import OTHER_USER, STRANGER
from tests.security.floods import HTTP2, NO_HTTP_PAGE
from tests.security.strangers import refusal_of, standby_request, stranger

pytestmark = [pytest.mark.cluster, OTHER_USER.mark]

SECONDS = 30.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("strangers")
    more = {
        "nnha.audit.client": str(folder / "calls.log"),
        "hadoop.caller.context.enabled": "true",
    }
    with open_cluster(folder / "cluster", datanodes=1, more_keys=more) as local:
        local.up()
        yield local
        local.down()


def nnha(cluster: Cluster, *words: str, piped: bytes = b"") -> str:
    command = [sys.executable, "-m", "ha.cli.main", *words, "--conf-dir", str(cluster.conf_dir)]
    done = subprocess.run(command, input=piped, capture_output=True, timeout=SECONDS, check=True)
    return done.stdout.decode()


def asks(located: hdfs.LocatedBlockProto, to: hdfs.DatanodeInfoProto) -> dict[Op, Message]:
    """Return what may be asked of a block by a caller that knows all about it, but has no token."""
    base = data.BaseHeaderProto(block=located.b)
    header = data.ClientOperationHeaderProto(baseHeader=base, clientName="x")
    return {
        Op.READ_BLOCK: data.OpReadBlockProto(header=header, offset=0, len=9),
        Op.BLOCK_CHECKSUM: data.OpBlockChecksumProto(header=base),
        Op.TRANSFER_BLOCK: data.OpTransferBlockProto(header=header, targets=[to]),
        Op.COPY_BLOCK: data.OpCopyBlockProto(header=base),
        Op.REPLACE_BLOCK: data.OpReplaceBlockProto(header=base, delHint="", source=to),
        Op.WRITE_BLOCK: data.OpWriteBlockProto(
            header=header, stage=data.OpWriteBlockProto.PIPELINE_SETUP_APPEND, pipelineSize=1,
            minBytesRcvd=located.b.numBytes, maxBytesRcvd=located.b.numBytes,
            latestGenerationStamp=1777,
            requestedChecksum=data.ChecksumProto(type=hdfs.CHECKSUM_CRC32C, bytesPerChecksum=512),
        ),
    }  # fmt: skip


async def located(cluster: Cluster, path: str) -> hdfs.LocatedBlockProto:
    """Return the first block of a file, as a NameNode names it to its owner."""
    address = HostPort("127.0.0.1", cluster.layout.namenodes[cluster.wait_for_active()].rpc)
    request = calls.GetBlockLocationsRequestProto(src=path, offset=0, length=1)
    found = await call_once(
        address, CLIENT_PROTOCOL, "getBlockLocations", request,
        calls.GetBlockLocationsResponseProto, deadline_seconds=SECONDS,
    )  # fmt: skip
    return found.locations.blocks[0]


def test_a_stranger_neither_reads_nor_damages_a_block_of_which_it_knows_all(
    cluster: Cluster,
) -> None:
    nnha(cluster, "fs", "put", "-", "/secret", piped=b"of its owner")
    nnha(cluster, "fs", "chmod", "600", "/secret")
    block = asyncio.run(located(cluster, "/secret"))
    (node,) = block.locs
    with stranger(node.id.xferPort) as port:
        for op, request in asks(block, node).items():
            answer = asyncio.run(ask(Place(port), op, request))
            assert answer.status == data.Status.ERROR_ACCESS_TOKEN, op
            assert block.b.poolId not in answer.message
    assert nnha(cluster, "fs", "cat", "/secret") == "of its owner"
    assert "12 bytes, 1 of 3 live" in nnha(cluster, "fsck", "/secret")


def findings(cluster: Cluster) -> list[dict[str, str]]:
    command = [sys.executable, "-m", "ha.cli.main", "doctor", "-o", "json"]
    done = subprocess.run(
        [*command, "--conf-dir", str(cluster.conf_dir)], capture_output=True, timeout=SECONDS,
        check=False,
    )  # fmt: skip
    found: list[dict[str, str]] = json.loads(done.stdout)["checks"]
    return found


def taking_over(cluster: Cluster, port: int) -> None:
    """Write as any client of ZooKeeper that the active is at that port, and delete its lock."""
    zookeeper = KazooClient(f"127.0.0.1:{cluster.layout.zookeeper}")
    zookeeper.start(SECONDS)
    try:
        znodes = "/hadoop-ha/ns1"
        active = cluster.wait_for_active()
        foreign = ActiveNodeInfo("ns1", active, "localhost", port, port)
        zookeeper.set(f"{znodes}/ActiveBreadCrumb", encode(foreign))
        zookeeper.delete(f"{znodes}/ActiveStandbyElectorLock")
    finally:
        zookeeper.stop()
        zookeeper.close()


def test_a_breadcrumb_of_a_stranger_has_no_foreign_process_asked_or_killed(
    cluster: Cluster,
) -> None:
    """Name a port of this test in the breadcrumb: the polite request must not go there."""
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        before = {path: path.stat().st_size for path in cluster.logs().values()}
        taking_over(cluster, foreign.getsockname()[1])

        def said() -> str:
            new = (path.read_bytes()[size:].decode() for path, size in before.items())
            return "".join(new)

        wait_until(
            lambda: "takeover.victim.not_configured" in said() and '"promoting"' in said(),
            what="no takeover", deadline_seconds=SECONDS,
        )  # fmt: skip
        active = cluster.wait_for_active()
        foreign.setblocking(False)
        with pytest.raises(BlockingIOError):
            foreign.accept()
    assert cluster.active_namenodes() == [active]
    told = [one for one in findings(cluster) if one["check"] == "breadcrumb"]
    assert [one["verdict"] for one in told] == ["ok"], "the new active has written its own"


def test_each_call_of_a_client_has_a_line(cluster: Cluster) -> None:
    """Ask over RPC and WebHDFS, as who may and as a stranger, who gives itself an odd context."""
    audit = cluster.layout.directory.parent / "calls.log"
    nnha(cluster, "fs", "mkdir", "/calls")
    nnha(cluster, "fs", "chmod", "700", "/calls")
    ports = cluster.layout.namenodes[cluster.wait_for_active()]
    with stranger(ports.rpc) as port:
        request = calls.GetFileInfoRequestProto(src="/calls/x\tip=/1")
        said = asyncio.run(
            refusal_of(port, CLIENT_PROTOCOL, str(STRANGER), "getFileInfo", request, "a\tb")
        )
        assert said.startswith("Permission denied: user=1234, access=EXECUTE")
    with urlopen(f"http://127.0.0.1:{ports.http}/webhdfs/v1/calls?op=LISTSTATUS", timeout=SECONDS):
        pass
    expected = [
        "allowed=true\tugi=root (auth:SIMPLE)\tip=/127.0.0.1\tcmd=mkdirs\tsrc=/calls\tdst=null\t"
        "perm=root:supergroup:rwxr-xr-x\tproto=rpc",
        "allowed=true\tugi=root (auth:SIMPLE)\tip=/127.0.0.1\tcmd=setPermission\tsrc=/calls\t"
        "dst=null\tperm=root:supergroup:rwx------\tproto=rpc",
        "allowed=false\tugi=1234 (auth:SIMPLE)\tip=/127.0.0.1\tcmd=getfileinfo\t"
        r"src=/calls/x\tip=/1" "\tdst=null\tperm=null\tproto=rpc\tcallerContext=" r"a\tb",
        "allowed=true\tugi=root (auth:SIMPLE)\tip=/127.0.0.1\tcmd=listStatus\tsrc=/calls\t"
        "dst=null\tperm=null\tproto=webhdfs",
    ]  # fmt: skip

    def lacking() -> list[str]:
        lines = {line.partition("audit: ")[2] for line in audit.read_text().splitlines()}
        return [line for line in expected if line not in lines]

    wait_until(lambda: not lacking(), what="lines of calls", deadline_seconds=SECONDS)


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


def test_a_flood_stops_neither_clients_nor_a_failover(cluster: Cluster) -> None:
    transfers = [ports.transfer for ports in cluster.layout.datanodes.values()]
    targets = [
        *((port, b"") for port in (*transfers, *lane_ports(cluster))),
        *((port, HTTP2) for port in grpc_ports(cluster)),
        *((port, PREAMBLE) for port in rpc_ports(cluster)),
        *((port, NO_HTTP_PAGE) for port in http_ports(cluster).values()),
        (http_ports(cluster)["nn1"], b"GET /livez HTT"),
    ]
    fails_over_in_a_flood(cluster, targets, {"jn1": "grpc", "nn1": "http"})
