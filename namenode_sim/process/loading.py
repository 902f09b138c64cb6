"""A NameNode that loads its image: it listens, says how far it is, and serves nothing yet."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

import structlog

from ha.daemon.notify import SERVICE
from ha.record import dataclass, field
from ha.rpc.java_names import CLIENT_PROTOCOL, NAMENODE_PROTOCOL, RETRIABLE, STANDBY_EXCEPTION
from ha.rpc.packets import Detail
from ha.rpc.protocol import Call, Method, NotServed, RpcProtocol
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import HAServiceStateProto
from namenode_sim.image.load_progress import LoadProgress

log = structlog.get_logger()

T = TypeVar("T")

TOLD_EVERY_SECONDS: Final = 10.0
ABANDONED_SECONDS: Final = 1.0
"""How long an abandoned load may take to notice that it is; a hung disk never does."""


@dataclass(frozen=True, slots=True)
class Loading:
    """The stage before there is a namespace."""

    name: str
    """The NameNode's."""
    progress: LoadProgress = field(default_factory=LoadProgress)

    def reason(self) -> str:
        what = self.progress.image or "its image"
        return f"it is loading {what}: {self.progress.share * 100:.0f} %"


def loading_protocols() -> tuple[RpcProtocol, ...]:
    """Return the protocols that answer clients and other NameNodes while the image is loaded.

    A client is sent to another NameNode, as a refused connection would send it.  A NameNode that
    asks for the image may ask again (docs/reference/namenode.md#loading).
    """

    async def state(
        _: Call, __: calls.HAServiceStateRequestProto
    ) -> calls.HAServiceStateResponseProto:
        return calls.HAServiceStateResponseProto(state=HAServiceStateProto.INITIALIZING)

    still = "NameNode still not started: it is loading its image"
    elsewhere = NotServed(STANDBY_EXCEPTION, still, Detail.ERROR_APPLICATION)
    later = NotServed(RETRIABLE, still, Detail.ERROR_APPLICATION)
    known = {"getHAServiceState": Method(calls.HAServiceStateRequestProto, state)}
    return (
        RpcProtocol(CLIENT_PROTOCOL, known, otherwise=elsewhere),
        RpcProtocol(NAMENODE_PROTOCOL, {}, otherwise=later),
    )


async def load_in_thread(
    loading: Loading, work: Callable[[LoadProgress], T], stop: asyncio.Event
) -> T | None:
    """Return the result of ``work``, run in a thread; None if ``stop`` was set before.

    Whatever ``work`` raises is raised here.  The thread is no worker of the loop's pool: a process
    that ends waits for those, and a reading from a hung disk never returns.
    """
    began = asyncio.get_running_loop().time()
    thread = _beside(lambda: work(loading.progress), "load-image")
    stopped = asyncio.create_task(stop.wait())
    teller = asyncio.create_task(_tell(loading))
    try:
        ends: set[asyncio.Future[object]] = {stopped, thread}  # type: ignore[arg-type]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if not thread.done():
            loading.progress.abandon()
            await asyncio.wait([thread], timeout=ABANDONED_SECONDS)
            log.info("namenode.load_abandoned", why=loading.reason(), ended=thread.done())
            return None
        result = thread.result()
        seconds = round(asyncio.get_running_loop().time() - began, 3)
        log.info("namenode.loaded", image=loading.progress.image, seconds=seconds)
        return result
    finally:
        stopped.cancel()
        teller.cancel()
        if thread.done() and not thread.cancelled():
            thread.exception()


async def _tell(loading: Loading) -> None:
    while True:
        SERVICE.status(loading.reason(), more_seconds=3 * TOLD_EVERY_SECONDS)
        await asyncio.sleep(TOLD_EVERY_SECONDS)
        log.info("namenode.loading", namenode=loading.name, because=loading.reason())


def _beside(work: Callable[[], T], name: str) -> asyncio.Future[T]:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, failure: BaseException | None) -> None:
        if done.done():
            return
        if failure is not None:
            done.set_exception(failure)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except BaseException as problem:  # noqa: BLE001 - raised again where it is awaited
            failure = problem
        with suppress(RuntimeError):  # the loop is closed: the result is not awaited any more
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=run, name=name, daemon=True).start()
    return done
