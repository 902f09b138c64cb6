"""Asks the active NameNode to end its segment, so that more of the log can be merged."""

from typing import Final

from ha.rpc.client import call_once
from ha.rpc.errors import RemoteFault, RpcError
from ha.rpc.java_names import CLIENT_PROTOCOL
from hadoop.proto import client_namenode_pb2 as calls
from journal.model import TxId
from spark.ends.sources.cluster import Cluster

ROLL_SECONDS: Final = 20.0


class RollFailed(Exception):
    """No NameNode ended a segment; the message has each one's answer."""


async def roll_log(cluster: Cluster) -> TxId:
    """``dfsadmin -rollEdits``: the first transaction of the new segment.

    Raises:
        RollFailed: if no NameNode did it, as for a user who is not the superuser.
    """
    failures = []
    for one in cluster.namenodes:
        try:
            answer = await call_once(
                one.rpc,
                CLIENT_PROTOCOL,
                "rollEdits",
                calls.RollEditsRequestProto(),
                calls.RollEditsResponseProto,
                deadline_seconds=ROLL_SECONDS,
            )
            return TxId(answer.newSegmentTxId)
        except (RpcError, RemoteFault) as failure:
            failures.append(f"{one.namenode}: {failure}")
    raise RollFailed("; ".join(failures))
