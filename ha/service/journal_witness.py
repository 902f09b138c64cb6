"""JournalWitness, both sides: a NameNode reports for how long its journal has not heard a writer.

See docs/reference/zkfc.md#witnessed-takeover.
"""

from collections.abc import Awaitable, Callable

from ha.conf.topology import HostPort
from ha.rpc.client import Connect, RpcConnection, call_once
from ha.rpc.java_names import JOURNAL_WITNESS
from ha.rpc.proto.journal_witness_pb2 import (
    WriterSilenceRequestProto,
    WriterSilenceResponseProto,
)
from ha.rpc.protocol import Call, Method, RpcProtocol
from ha.service.faults import answering, speaking_to
from ha.service.model import WriterSilence

Tell = Callable[[], Awaitable[WriterSilence]]


async def ask_writer_silence(
    address: HostPort, *, deadline_seconds: float, connect: Connect = RpcConnection.open
) -> WriterSilence:
    """Ask a NameNode for how long its journal has not heard a writer.

    Raises:
        ServiceRefused: it does not know, or is a NameNode of Hadoop's.
        ServiceUnreachable: there is no answer within the deadline.
    """
    with speaking_to(str(address)):
        told = await call_once(
            address,
            JOURNAL_WITNESS,
            "writerSilence",
            WriterSilenceRequestProto(),
            WriterSilenceResponseProto,
            deadline_seconds=deadline_seconds,
            connect=connect,
        )
    return WriterSilence(
        nodes=told.nodes,
        witnesses=told.witnesses,
        epoch=told.epoch,
        silent_seconds=told.silentMicros / 1e6,
        lease_seconds=told.readLeaseMicros / 1e6,
    )


def journal_witness_protocol(tell: Tell) -> RpcProtocol:
    """Serve JournalWitness with a function whose refusals are ``ServiceRefused`` kinds."""

    async def silence(_: Call, __: WriterSilenceRequestProto) -> WriterSilenceResponseProto:
        with answering():
            told = await tell()
        return WriterSilenceResponseProto(
            nodes=told.nodes,
            witnesses=told.witnesses,
            epoch=told.epoch,
            silentMicros=int(told.silent_seconds * 1e6),
            readLeaseMicros=int(told.lease_seconds * 1e6),
        )

    return RpcProtocol(
        JOURNAL_WITNESS, {"writerSilence": Method(WriterSilenceRequestProto, silence)}
    )
