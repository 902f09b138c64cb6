"""A connection's thread that cannot begin, and the socket that a thread gives back to the loop."""

import asyncio
import errno
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from ha.rpc.limits import RpcLimits
from tests.ha.rpc.test_reading_thread import UNREAD_BYTES, WAIT_SECONDS, Desk, served
from tests.ha.rpc.wire import echo_call, eventually
from tests.log_lines import captured


async def test_a_connection_that_comes_back_from_a_thread_does_not_hold_up_the_loop() -> None:
    """Let its client read nothing: a write that waited would be the end of all other work."""
    desk, large, held_up = Desk(), "x" * UNREAD_BYTES, threading.Event()
    async with served(desk, RpcLimits(outgoing_pause_bytes=2 * UNREAD_BYTES)) as (_, connect):
        with connect() as client:
            await asyncio.to_thread(client.ask, echo_call(0, "first"))
            assert desk.threads

            def free_the_loop() -> None:
                held_up.set()
                client.answer()

            watchdog = threading.Timer(WAIT_SECONDS, free_the_loop)
            watchdog.start()
            try:
                call = echo_call(1, large, method="other")
                await asyncio.to_thread(client.socket.sendall, call)
                await eventually(lambda: desk.done == ["first", large], seconds=2 * WAIT_SECONDS)
                await asyncio.to_thread(lambda: None)  # the answer is on its way
                assert not held_up.is_set()
            finally:
                watchdog.cancel()
            assert (await asyncio.to_thread(client.answer)).call_id == 1


@pytest.mark.parametrize(
    ("part", "failure"),
    [
        ((socket, "fromfd"), OSError(errno.EMFILE, "Too many open files")),
        ((threading.Thread, "start"), RuntimeError("can't start new thread")),
    ],
    ids=["no descriptor", "no thread"],
)
async def test_where_there_is_no_room_for_a_thread_the_loop_answers(
    part: tuple[object, str], failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise failure

    desk = Desk()
    async with served(desk) as (_, connect):
        with connect() as client, captured("rpc.") as logs:
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(WAIT_SECONDS):
                with ThreadPoolExecutor(1) as pool:
                    await loop.run_in_executor(pool, int)  # its thread is begun
                    with monkeypatch.context() as full:
                        full.setattr(*part, refuse)
                        asking = partial(client.ask, echo_call(0, "a"), echo_call(1, "b"))
                        answers = await loop.run_in_executor(pool, asking)
            assert [answer.call_id for answer in answers] == [0, 1]
            assert desk.done == ["a", "b"]
            assert not desk.threads
            assert {log["because"] for log in logs} == {str(failure)}
            await asyncio.to_thread(client.ask, echo_call(2, "c"))
    assert desk.threads
