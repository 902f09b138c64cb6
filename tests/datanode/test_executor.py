"""Whose commands are carried out, when they are taken from the queue."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from datanode.namenodes.claim import NameNodeId
from datanode.namenodes.commands import Delete, Transfer
from datanode.namenodes.executor import Executor
from datanode.namenodes.identity import Identity, Namespace
from datanode.transfers.transfer import Targets
from ha.security.sasl.mechanism import Protection
from hadoop.wire.peer import TransferLimits
from tests.datanode.block_client import Place, until
from tests.datanode.stores import POOL, block, finalized, store, volume
from tests.datanode.test_handshake import call_with

ONE, TWO = NameNodeId("nn1"), NameNodeId("nn2")
WHO = Identity("uuid-1", "127.0.0.1", 1, 2, 3, Namespace(77, "CID-1", 1234, POOL.pool))


async def test_what_a_namenode_ordered_before_a_registration_is_not_carried_out(
    tmp_path: Path,
) -> None:
    """Bad schedule: it is a new process, counts the replica, and has another one go."""
    kept = await store(volume(tmp_path))
    earlier, of_another, later = block(0), block(1), block(2)
    for each in (earlier, of_another, later):
        await finalized(kept, each, b"bytes")
    obeyed = [ONE]
    executor = Executor(kept, WHO, TransferLimits(), obeyed=lambda: obeyed[0], calls=lambda _: None)
    executor.add(ONE, [Delete(earlier, quietly=False)])
    executor.forget(TWO)
    executor.add(TWO, [Delete(of_another, quietly=False)])
    executor.forget(ONE)
    executor.add(ONE, [Delete(later, quietly=False)])
    running = asyncio.create_task(executor.run())
    await until(lambda: later not in {one.block for one in kept})
    obeyed[0] = TWO
    assert {one.block for one in kept} == {earlier, of_another}
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


@pytest.mark.parametrize(
    ("obeyed", "deleted"),
    [((ONE,), True), ((ONE, TWO), False), ((ONE, TWO, ONE), False)],
    ids=["still obeyed", "another is obeyed", "obeyed in an earlier term"],
)
async def test_an_order_counts_in_its_own_term_only(
    tmp_path: Path, obeyed: tuple[NameNodeId, ...], deleted: bool
) -> None:
    kept = await store(volume(tmp_path))
    first, last = block(0), block(1)
    for each in (first, last):
        await finalized(kept, each, b"bytes")
    executor = Executor(
        kept, WHO, TransferLimits(), obeyed=lambda: obeyed[-1], calls=lambda _: None
    )
    executor.obey(ONE)
    executor.add(ONE, [Delete(first, quietly=False)])
    for who in obeyed[1:]:
        executor.obey(who)
    executor.add(obeyed[-1], [Delete(last, quietly=False)])
    running = asyncio.create_task(executor.run())
    await until(lambda: last not in {one.block for one in kept})
    assert (first in {one.block for one in kept}) is not deleted
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_copies_are_counted_while_they_are_under_way_and_end_with_the_executor(
    tmp_path: Path,
) -> None:
    """One is of a replica that is not here, and one waits for a proof that never comes."""
    call_with(Protection.PRIVACY)
    kept = await store(volume(tmp_path))
    await finalized(kept, block(0), b"bytes")
    heard = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readexactly(1)
            heard.set()
            await reader.read()
        finally:
            writer.close()

    executor = Executor(kept, WHO, TransferLimits(), obeyed=lambda: ONE, calls=lambda _: None)
    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        place = Place(server.sockets[0].getsockname()[1])
        before = asyncio.all_tasks()
        running = asyncio.create_task(executor.run())
        executor.add(ONE, [Transfer(block(7), 5, Targets([place.info], [], []))])
        await until(lambda: not executor.transfers and not asyncio.all_tasks() - before - {running})
        executor.add(ONE, [Transfer(block(0), 5, Targets([place.info], [], []))])
        await until(heard.is_set)
        assert executor.transfers == 1
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await until(lambda: not executor.transfers)
