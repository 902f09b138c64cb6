"""What a NameNode reports to the ZKFC next to it of the newest writer's silence: JournalWitness.

The ZKFC knows no journal.  This NameNode reads it anyway, and has connections to its nodes.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from ha.rpc.protocol import RpcProtocol
from ha.service.errors import ServiceFailed
from ha.service.journal_witness import journal_witness_protocol
from ha.service.model import WriterSilence
from journal.errors import JournalError
from journal.silence import Silence

WITHIN_SECONDS: Final = 0.2
"""A majority answers in a few milliseconds, or what it says would be old."""


def witness_protocol(silence: Callable[[float], Awaitable[Silence]]) -> RpcProtocol:
    """Return the protocol; ``silence`` asks the journal's nodes, within the given seconds."""

    async def tell() -> WriterSilence:
        try:
            told = await silence(WITHIN_SECONDS)
        except JournalError as failure:
            raise ServiceFailed(str(failure)) from failure
        return WriterSilence(
            nodes=told.nodes,
            witnesses=told.witnesses,
            epoch=told.epoch,
            silent_seconds=told.silent_seconds,
            lease_seconds=told.lease_seconds,
        )

    return journal_witness_protocol(tell)
