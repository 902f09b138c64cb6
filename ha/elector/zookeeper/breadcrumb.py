"""Encodes and decodes the bytes of the lock and breadcrumb znodes (Hadoop's ActiveNodeInfo).

See docs/reference/election.md#bytes-of-the-lock-and-the-breadcrumb.

Pure.
"""

from typing import Final

from google.protobuf.message import DecodeError, EncodeError

from ha.conf.host_names import fault_of
from ha.elector.proto import hazk_info_pb2
from ha.elector.zookeeper.errors import BadBreadcrumb
from ha.record import dataclass

MAX_SHOWN: Final = 80


@dataclass(frozen=True, slots=True)
class ActiveNodeInfo:
    """A holder of the lock, present or last; ``port`` is that of the NameNode's service RPC."""

    nameservice: str
    namenode: str
    hostname: str
    port: int
    zkfc_port: int


def encode(info: ActiveNodeInfo) -> bytes:
    """Return the bytes of a node, always the same ones: holders are compared by their bytes."""
    message = hazk_info_pb2.ActiveNodeInfo(
        nameserviceId=info.nameservice,
        namenodeId=info.namenode,
        hostname=info.hostname,
        port=info.port,
        zkfcPort=info.zkfc_port,
    )
    try:
        return message.SerializeToString(deterministic=True)
    except EncodeError as failure:
        raise BadBreadcrumb(f"cannot name this node in a znode: {failure}") from failure


def decode(data: bytes) -> ActiveNodeInfo:
    """Return the node that these bytes name.  Raises BadBreadcrumb, quoting the bytes in hex."""
    try:
        message = hazk_info_pb2.ActiveNodeInfo.FromString(data)
    except DecodeError as failure:
        raise BadBreadcrumb(
            f"the znode's {len(data)} bytes are no ActiveNodeInfo: {data[:64].hex()}"
        ) from failure
    if not message.IsInitialized():
        raise BadBreadcrumb(f"the znode's ActiveNodeInfo lacks fields: {data[:64].hex()}")
    # protobuf returns bytes for a string that is not valid UTF-8.
    if bytes in map(type, (message.nameserviceId, message.namenodeId, message.hostname)):
        raise BadBreadcrumb(f"the znode's ActiveNodeInfo has names in no UTF-8: {data[:64].hex()}")
    for text in (message.nameserviceId, message.namenodeId, message.hostname):
        if fault := fault_of(text):
            raise BadBreadcrumb(
                f"a name in the znode's ActiveNodeInfo {fault}: {text[:MAX_SHOWN]!r} "
                f"({data[:64].hex()})"
            )
    return ActiveNodeInfo(
        nameservice=message.nameserviceId,
        namenode=message.namenodeId,
        hostname=message.hostname,
        port=message.port,
        zkfc_port=message.zkfcPort,
    )
