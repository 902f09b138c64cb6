"""The server's side of HAServiceProtocol and ZKFCProtocol: a service's own words on the wire."""

import asyncio
from typing import Final, Protocol

from ha.daemon.identity import clock
from ha.rpc.java_names import HA_SERVICE_PROTOCOL, ZKFC_PROTOCOL
from ha.rpc.proto.ha_service_pb2 import (
    GetServiceStatusRequestProto,
    GetServiceStatusResponseProto,
    HAServiceStateProto,
    HAStateChangeRequestInfoProto,
    MonitorHealthRequestProto,
    MonitorHealthResponseProto,
    TransitionToActiveRequestProto,
    TransitionToActiveResponseProto,
    TransitionToObserverRequestProto,
    TransitionToObserverResponseProto,
    TransitionToStandbyRequestProto,
    TransitionToStandbyResponseProto,
)
from ha.rpc.proto.zkfc_pb2 import (
    CedeActiveRequestProto,
    CedeActiveResponseProto,
    GracefulFailoverRequestProto,
    GracefulFailoverResponseProto,
)
from ha.rpc.protocol import Call, Method, RpcProtocol
from ha.service.errors import ServiceFailed
from ha.service.faults import answering
from ha.service.model import RequestSource, ServiceStatus


class HaService(Protocol):
    """A NameNode as HAServiceProtocol sees it.  Refusals are ``ServiceRefused`` kinds."""

    async def status(self) -> ServiceStatus:
        """Return the NameNode's state, and whether it could become active."""

    async def monitor_health(self) -> None:
        """Return if well, raise HealthCheckFailed with the reason if not."""

    async def transition_to_active(
        self, source: RequestSource, call: Call, *, predecessor_gone_until: float = 0.0
    ) -> None:
        """Become active; no change if it is."""

    async def transition_to_standby(self, source: RequestSource, call: Call) -> None:
        """Become standby; no change if it is."""


class ZkfcService(Protocol):
    """A failover controller as ZKFCProtocol sees it.  Refusals are ``ServiceRefused`` kinds."""

    async def cede_active(self, millis: int, call: Call) -> None:
        """Leave the election for ``millis`` milliseconds; below one: come back now."""

    async def graceful_failover(self, call: Call) -> None:
        """Make the local NameNode active, or raise ServiceFailed with the reason."""


LATE_SECONDS: Final = 300.0
"""Longer than any request waits in a socket while its sender waits for the answer."""


class _DemotionRecord:
    """Remembers the newest request to become standby, so that a promotion from before is refused.

    The bad schedules: a controller's request waits in a stalled NameNode's socket, another
    controller takes over and this NameNode confirms that it is standby, and only then the first
    request is read.  Or the same controller asks again and has the NameNode promoted, gives its
    lock up, and a successor is at work when the first request is read: both were made under one
    lock, and only the times of asking distinguish them, where their sender's clock is ours. The
    lock is forgotten after a while: a new ZooKeeper ensemble counts from 1.
    """

    def __init__(self) -> None:
        self._turn = 0
        self._asked_micros = 0
        self._until = 0.0

    def note(self, info: HAStateChangeRequestInfoProto) -> None:
        """Take note of a request to become standby."""
        if info.nnhaClock == clock():
            self._asked_micros = max(self._asked_micros, info.nnhaAskedMicros)
        if info.nnhaTurn == 0:
            return
        now = asyncio.get_running_loop().time()
        self._turn = max(self._turn, info.nnhaTurn) if now < self._until else info.nnhaTurn
        self._until = now + LATE_SECONDS

    def check(self, info: HAStateChangeRequestInfoProto) -> None:
        """Raise ServiceFailed for a promotion from before; a turn or time of 0 is not known."""
        known = asyncio.get_running_loop().time() < self._until
        if known and 0 < info.nnhaTurn < self._turn:
            raise ServiceFailed(
                f"this request to become active is late: it was made under {info.nnhaTurn:#x}, "
                f"and under {self._turn:#x} this NameNode was told to be standby"
            )
        if info.nnhaClock == clock() and 0 < info.nnhaAskedMicros < self._asked_micros:
            later = (self._asked_micros - info.nnhaAskedMicros) / 1e6
            raise ServiceFailed(
                "this request to become active is late: this NameNode was told to be standby "
                f"{later:.3f} s after it was asked"
            )


def _gone_until(info: HAStateChangeRequestInfoProto) -> float:
    """Return until when no other NameNode can serve, on our loop's clock; 0 if not known.

    The bad schedule for a claim without an end: the host stops with the request in a socket,
    another NameNode becomes active behind ``journal-epoch`` alone, and the request is read when the
    host goes on.  What it says is true of an older active only.
    """
    if not info.nnhaPredecessorGone or info.nnhaClock != clock():
        return 0.0
    return info.nnhaGoneUntilMicros / 1e6


def ha_service_protocol(service: HaService) -> RpcProtocol:
    """Serve HAServiceProtocol with ``service``."""

    demotions = _DemotionRecord()

    async def status(_: Call, __: GetServiceStatusRequestProto) -> GetServiceStatusResponseProto:
        with answering():
            status = await service.status()
        # Readiness goes out in every state, as Java's own server sends it.
        process = status.process
        return GetServiceStatusResponseProto(
            state=HAServiceStateProto.Value(status.state.name),
            readyToBecomeActive=status.ready_to_become_active,
            notReadyReason=None if status.ready_to_become_active else status.not_ready_reason,
            nnhaPid=None if process is None else process.pid,
            nnhaStartedTicks=None if process is None else process.started_ticks,
            nnhaMachine=None if process is None else process.machine,
        )

    async def health(_: Call, __: MonitorHealthRequestProto) -> MonitorHealthResponseProto:
        with answering():
            await service.monitor_health()
        return MonitorHealthResponseProto()

    async def active(
        call: Call, request: TransitionToActiveRequestProto
    ) -> TransitionToActiveResponseProto:
        with answering():
            demotions.check(request.reqInfo)
            await service.transition_to_active(
                RequestSource(request.reqInfo.reqSource),
                call,
                predecessor_gone_until=_gone_until(request.reqInfo),
            )
        return TransitionToActiveResponseProto()

    async def standby(
        call: Call, request: TransitionToStandbyRequestProto
    ) -> TransitionToStandbyResponseProto:
        with answering():
            demotions.note(request.reqInfo)
            await service.transition_to_standby(RequestSource(request.reqInfo.reqSource), call)
        return TransitionToStandbyResponseProto()

    async def observer(
        _: Call, __: TransitionToObserverRequestProto
    ) -> TransitionToObserverResponseProto:
        with answering():
            raise ServiceFailed("This NameNode cannot become an observer: nnha serves no observers")

    return RpcProtocol(
        HA_SERVICE_PROTOCOL,
        {
            "getServiceStatus": Method(GetServiceStatusRequestProto, status),
            "monitorHealth": Method(MonitorHealthRequestProto, health),
            "transitionToActive": Method(TransitionToActiveRequestProto, active),
            "transitionToStandby": Method(TransitionToStandbyRequestProto, standby),
            "transitionToObserver": Method(TransitionToObserverRequestProto, observer),
        },
    )


def zkfc_protocol(service: ZkfcService) -> RpcProtocol:
    """Serve ZKFCProtocol with ``service``."""

    async def cede(call: Call, request: CedeActiveRequestProto) -> CedeActiveResponseProto:
        with answering():
            await service.cede_active(signed_millis(request.millisToCede), call)
        return CedeActiveResponseProto()

    async def failover(
        call: Call, _: GracefulFailoverRequestProto
    ) -> GracefulFailoverResponseProto:
        with answering():
            await service.graceful_failover(call)
        return GracefulFailoverResponseProto()

    return RpcProtocol(
        ZKFC_PROTOCOL,
        {
            "cedeActive": Method(CedeActiveRequestProto, cede),
            "gracefulFailover": Method(GracefulFailoverRequestProto, failover),
        },
    )


def signed_millis(unsigned: int) -> int:
    """Convert a uint32 to Java's int: its -1 arrives as 4294967295.

    See docs/reference/rpc.md#negative-numbers-in-unsigned-fields.
    """
    return unsigned - (1 << 32) if unsigned >= 1 << 31 else unsigned
