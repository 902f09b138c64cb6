"""What operators ask of a DataNode by ClientDatanodeProtocol: to report, to change, to stop.

See docs/reference/datanode.md#hadoop-rpc-of-a-datanode.
"""

import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

import structlog

from datanode.model import BeingWritten
from datanode.namenodes.identity import SOFTWARE_VERSION
from datanode.replicas.restart_marks import leave_mark
from datanode.replicas.store import Store
from ha.record import dataclass
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import IO_EXCEPTION
from ha.rpc.protocol import Call, Method
from ha.service.reconfiguration import Check, Reconfiguration
from hadoop.proto import client_datanode_pb2 as client
from hadoop.wire.errors import DataNodeError

log = structlog.get_logger()


class Operated(Protocol):
    """The DataNode as its operators see it.

    An empty ``namenode`` (``host:port``) stands for all; ``shut_down`` returns whether it began
    now, and ``evict_writers`` how many writes it has ended.
    """

    def uptime_seconds(self) -> float: ...
    def report_soon(self, namenode: str, *, incremental: bool) -> None: ...
    def evict_writers(self) -> int: ...
    def shut_down(self, *, for_upgrade: bool) -> bool: ...


@dataclass(frozen=True, slots=True)
class OperatorCalls:
    """Answers an operator, whom ``check`` lets in."""

    node: Operated
    reconfiguration: Reconfiguration
    check: Check

    def methods(self) -> Mapping[str, Method]:
        return {
            "getDatanodeInfo": Method(client.GetDatanodeInfoRequestProto, self._info),
            "triggerBlockReport": Method(client.TriggerBlockReportRequestProto, self._report),
            "evictWriters": Method(client.EvictWritersRequestProto, self._evict),
            "shutdownDatanode": Method(client.ShutdownDatanodeRequestProto, self._shut_down),
            **self.reconfiguration.methods(self.check),
        }

    async def _info(self, _: Call, __: object) -> client.GetDatanodeInfoResponseProto:
        info = client.DatanodeLocalInfoProto(
            softwareVersion=SOFTWARE_VERSION, configVersion="core-0,hdfs-0",
            uptime=int(self.node.uptime_seconds()),
        )  # fmt: skip
        return client.GetDatanodeInfoResponseProto(localInfo=info)

    async def _report(
        self, call: Call, request: client.TriggerBlockReportRequestProto
    ) -> client.TriggerBlockReportResponseProto:
        await self.check(call)
        self.node.report_soon(request.nnAddress, incremental=request.incremental)
        return client.TriggerBlockReportResponseProto()

    async def _evict(self, call: Call, _: object) -> client.EvictWritersResponseProto:
        await self.check(call)
        log.info("datanode.writers_evicted", user=call.user, count=self.node.evict_writers())
        return client.EvictWritersResponseProto()

    async def _shut_down(
        self, call: Call, request: client.ShutdownDatanodeRequestProto
    ) -> client.ShutdownDatanodeResponseProto:
        await self.check(call)
        if not self.node.shut_down(for_upgrade=request.forUpgrade):
            raise RemoteFault(IO_EXCEPTION, "Shutdown already in progress.")
        log.info("datanode.shutdown_requested", user=call.user, for_upgrade=request.forUpgrade)
        return client.ShutdownDatanodeResponseProto()


async def leave_marks(store: Store, follows: Callable[[], bool]) -> None:
    """Let a process that follows soon go on with the replicas that clients were writing."""
    for replica in store if follows() else ():
        if isinstance(replica, BeingWritten):
            with contextlib.suppress(DataNodeError, OSError):  # it then waits for its recovery
                paths = store.volumes[replica.storage].paths(replica)
                await store.volumes.run(replica.storage, partial(leave_mark, paths, replica))
