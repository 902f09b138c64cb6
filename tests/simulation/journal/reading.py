"""A standby's half of the journal: the product's reader, over and over, under faults."""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from journal.errors import JournalError
from journal.frame import HEADER_BYTES, file_header
from journal.links.settings import ReaderSettings
from journal.model import LAYOUT_VERSION, TxId
from journal.reader.reader import JournalReader
from tests.simulation.engine.trace import Trace
from tests.simulation.engine.verdict import Violated
from tests.simulation.journal.contender import judge
from tests.simulation.journal.machine import JOURNAL, NAMESPACE, RPC_PORT, Machine
from tests.simulation.journal.oracle import Oracle
from tests.simulation.journal.tags import Tag, read_run

_SETTINGS: Final = ReaderSettings(
    select_input_streams_timeout_seconds=1.0,
    http_open_timeout_seconds=1.0,
    http_read_timeout_seconds=1.0,
    chunk_bytes=100,
)


class Standby:
    """Reads every edit once, in order, and reports it to the oracle.

    With ``follow`` it reads the open segment as well, as far as that cannot vanish; with ``strict``
    it believes nothing that one node alone lists and no other has.
    """

    def __init__(
        self,
        name: str,
        machines: Mapping[str, Machine],
        oracle: Oracle,
        trace: Trace,
        *,
        follow: bool = False,
        strict: bool = False,
    ) -> None:
        self.name = name
        self.next_txid = 1
        self.follow = follow
        self.tags: list[Tag] = []
        self._machines = machines
        self._oracle = oracle
        self._trace = trace
        self._reader = JournalReader(
            [(machine, RPC_PORT) for machine in machines],
            journal_id=JOURNAL,
            nameservice_id=JOURNAL,
            namespace=NAMESPACE,
            settings=replace(_SETTINGS, refuse_unconfirmed=strict),
        )

    async def tail(self, interval: float) -> None:
        """Read for ever; failures of nodes and links are part of life."""
        try:
            while True:
                await asyncio.sleep(interval)
                try:
                    await self.catch_up()
                except JournalError as failure:
                    self._trace.add(self.name, f"cannot read: {failure}")
                    self._judge(failure)
        finally:
            await self._reader.close()

    async def close(self) -> None:
        await self._reader.close()

    async def catch_up(self) -> None:
        """Read what is durable by now; ``follow`` also reads what is not finalized yet."""
        read = self._reader.durable_edits if self.follow else self._reader.edits
        async with aclosing(read(TxId(self.next_txid))) as chunks:
            async for chunk in chunks:
                data = file_header() + chunk.records
                run = read_run(data, chunk.first, start=HEADER_BYTES)
                if run.last != chunk.last or chunk.layout_version != LAYOUT_VERSION:
                    self._oracle.guarded(lambda: _bad_chunk(self.name))
                self._oracle.read(self.name, self.next_txid, run)
                self.tags.extend(run.tags)
                self.next_txid = run.last + 1
                self._trace.add(self.name, f"reads {run.first}-{run.last}")

    def _judge(self, failure: JournalError) -> None:
        self._oracle.guarded(lambda: judge(failure, self.name, self._machines))


def _bad_chunk(reader: str) -> None:
    raise Violated("I12", f"{reader} was handed edits that are not what their frames say")
