"""``./run soak lane``: write lanes are cut under load; whatever was acknowledged is read back.

Three real nodes in this process, on real sockets and disks.  One strike after the other: a lane is
cut, or a node is started again, while callers write.  The next comes when all nodes are in sync,
for a writer that loses two at once ends, as it should.
"""

import asyncio
import json
import random
import socket
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

import click
import structlog

from journal.errors import JournalError
from journal.model import TxId
from journal.node.lanes.lane import Lanes
from journal.writer.writer import QuorumWriter
from tests.journal.node.process import until
from tests.journal.writer.journal_cluster import QUICK, Nodes, edits

HOST = "127.0.0.1"
CALLERS = 6
MOST_PADDING = 200_000
"""Some batches are in several pieces on their way when the lane is cut."""
RESTARTS = 0.1
ROLLS = 0.15
MOST_AT_ONCE = 500
"""Strikes in one life of the three nodes; what was acknowledged in it is kept in memory."""
ROLL_AFTER_SECONDS = 5.0
"""A node that lags longer waits for the next segment; a NameNode's come every two minutes."""
ROLLS_TO_WAIT_FOR = 3


@dataclass(slots=True)
class Told:
    """What a soak came to."""

    seed: int
    cuts: int = 0
    restarts: int = 0
    rolls: int = 0
    writers: int = 0
    acknowledged: int = 0
    ends: list[str] = field(default_factory=list)
    """Why writers ended."""
    lost: list[int] = field(default_factory=list)
    over_lanes: int = 0
    """Strikes before which all three nodes were written to over lanes."""


class Load:
    """Callers that write, one batch after the other, and remember what was acknowledged."""

    def __init__(self, nodes: Nodes, rng: random.Random, told: Told) -> None:
        self._nodes = nodes
        self._rng = rng
        self._told = told
        self.next_txid = 1
        self._replacing = asyncio.Lock()
        self._may_write = asyncio.Event()
        self._under_way = 0
        self.acknowledged: dict[int, bytes] = {}
        self.writer: QuorumWriter | None = None

    async def begin(self) -> None:
        """Let a writer take over, and go on behind the last edit that there is."""
        writer = self._nodes.writer(QUICK)
        self._told.writers += 1
        try:
            won = await writer.become_writer()
            self.next_txid = won.last_txid + 1
            await writer.start_segment(TxId(self.next_txid))
        except JournalError:
            await writer.close()
            raise
        self.writer = writer
        self._may_write.set()

    async def end(self) -> None:
        if self.writer is not None:
            await self.writer.close()

    async def write_until(self, over: asyncio.Event) -> None:
        while not over.is_set():
            await self._may_write.wait()
            writer, txid = self.writer, self.next_txid
            assert writer is not None
            padding = self._rng.choice((0, 10, 1000, MOST_PADDING))
            records = edits(txid, txid, "x" * self._rng.randint(0, padding))
            self.next_txid += 1
            self._under_way += 1
            try:
                await writer.write(TxId(txid), 1, records)
            except asyncio.CancelledError:
                await self._replace(writer)  # it was closed under this write
            except JournalError as end:
                self._told.ends.append(str(end))
                await self._replace(writer)
            else:
                self.acknowledged[txid] = records
            finally:
                self._under_way -= 1

    async def roll(self) -> None:
        """Begin the next segment, while no caller writes."""
        self._may_write.clear()
        await until(lambda: self._under_way == 0, "the end of what is under way")
        if self._may_write.is_set() or self.writer is None:
            return  # another writer has taken over
        last = TxId(self.next_txid - 1)
        try:
            await self.writer.finalize_segment(last)
            await self.writer.start_segment(TxId(last + 1))
        except JournalError as end:
            self._told.ends.append(str(end))
            await self._replace(self.writer)
            return
        self._told.rolls += 1
        self._may_write.set()

    async def _replace(self, dead: QuorumWriter) -> None:
        async with self._replacing:
            if self.writer is not dead:
                return
            self._may_write.clear()
            await dead.close()
            while self.writer is dead:
                try:
                    await self.begin()
                except JournalError as end:  # the nodes are being struck
                    self._told.ends.append(str(end))


async def soak(folder: Path, count: int, seed: int) -> Told:
    """Strike ``count`` times, and then run a clean writer and reader."""
    told, rng = Told(seed), random.Random(seed)
    nodes = Nodes(folder)
    nodes.extra["lane_host"] = HOST
    await nodes.start()
    try:
        await nodes.format()
        load, over = Load(nodes, rng, told), asyncio.Event()
        await load.begin()
        callers = [asyncio.create_task(load.write_until(over)) for _ in range(CALLERS)]
        try:
            for number in range(count):
                try:
                    await _strike(nodes, load, rng, told)
                except TimeoutError:
                    raise click.ClickException(_standstill(number, load, told)) from None
        finally:
            over.set()
            await asyncio.wait(callers)
        for caller in callers:
            caller.result()
        await load.end()
        await nodes.recover()
        told.acknowledged = len(load.acknowledged)
        told.lost = _missing(await nodes.read_all(), load.acknowledged)
    finally:
        await nodes.stop()
    return told


async def _strike(nodes: Nodes, load: Load, rng: random.Random, told: Told) -> None:
    await _all_in_sync(load)
    writer = load.writer
    if writer is not None and all(s.via == "lane" for s in writer.node_statuses()):
        told.over_lanes += 1
    await asyncio.sleep(rng.random() * 0.02)
    which, kind = rng.randrange(3), rng.random()
    if kind < RESTARTS:
        await nodes.stop(which)
        await nodes.start(which)
        told.restarts += 1
    elif kind < RESTARTS + ROLLS:
        await load.roll()
    else:
        _cut(nodes, which, rng)
        told.cuts += 1


async def _all_in_sync(load: Load) -> None:
    """Wait until all nodes take part, and roll in the meantime as a NameNode would.

    A node that was away fetches the open segment from its start.  These callers write more in that
    time than their writer keeps for it, again and again, until the next segment begins.
    """
    mark = load.next_txid  # not sent yet: a node that has it has noticed the last strike
    for _ in range(ROLLS_TO_WAIT_FOR):
        try:
            async with asyncio.timeout(ROLL_AFTER_SECONDS):
                await until(lambda: _in_sync(load, mark), "all nodes in sync")
        except TimeoutError:
            await load.roll()
        else:
            return
    await until(lambda: _in_sync(load, mark), "all nodes in sync")


def _standstill(number: int, load: Load, told: Told) -> str:
    found = None if load.writer is None else load.writer.node_statuses()
    return (
        f"--seed {told.seed}: nothing goes on before strike {number}, at edit {load.next_txid}: "
        f"{found}; ends of writers: {told.ends[-3:]}"
    )


def _in_sync(load: Load, mark: int) -> bool:
    writer = load.writer
    return writer is not None and all(
        status.in_sync and status.acked_txid >= mark for status in writer.node_statuses()
    )


def _cut(nodes: Nodes, which: int, rng: random.Random) -> None:
    daemon = nodes.daemons[which]
    assert daemon is not None
    lanes = daemon.node.lanes
    assert isinstance(lanes, Lanes)
    how = rng.choice((socket.SHUT_RDWR, socket.SHUT_RD, socket.SHUT_WR))
    for connection in list(lanes._threads):
        try:
            connection.shutdown(how)
        except OSError:
            continue  # it has ended by itself


def _missing(read: bytes, acknowledged: dict[int, bytes]) -> list[int]:
    """Return the edits that are not what was acknowledged, each behind the one before."""
    missing, end = [], 0
    for txid, records in sorted(acknowledged.items()):
        at = read.find(records, end)
        if at < 0:
            missing.append(txid)
        else:
            end = at + len(records)
    return missing


def _add(told: Told, part: Told) -> None:
    for name in ("cuts", "restarts", "rolls", "writers", "acknowledged", "over_lanes"):
        setattr(told, name, getattr(told, name) + getattr(part, name))
    told.ends += part.ends
    told.lost += part.lost


@click.command("lane")
@click.option("--count", default=200, show_default=True, help="Strikes.")
@click.option("--seed", type=int, help="Of an earlier run, to draw the same strikes.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def main(count: int, seed: int | None, as_json: bool) -> None:
    """Cut write lanes under load; fails if an acknowledged edit is gone or another one."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    seed = random.randrange(2**32) if seed is None else seed
    told = Told(seed)
    for done in range(0, count, MOST_AT_ONCE):
        with tempfile.TemporaryDirectory() as name:
            part = asyncio.run(soak(Path(name), min(MOST_AT_ONCE, count - done), seed + done))
        _add(told, part)
        click.echo(f"{min(done + MOST_AT_ONCE, count)} of {count} strikes", err=True)
    if as_json:
        click.echo(json.dumps(asdict(told)))
    else:
        for end in told.ends[:5]:
            click.echo(f"a writer ended: {end}")
        click.echo(
            f"{told.cuts} lanes cut, {told.restarts} nodes started again, {told.rolls} rolls, "
            f"{told.writers} writers; {told.acknowledged} edits acknowledged, {len(told.lost)} lost"
        )
    if told.lost:
        raise click.ClickException(f"--seed {seed}: lost {told.lost[:20]}")
