"""Formats a journal on all nodes, and purges old edits."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import structlog

from journal.errors import BadRequest, JournalError, NotFormatted, QuorumLost
from journal.links.quorum_call import QuorumCall, ask_each, failed, reasons
from journal.model import NO_EPOCH, Epoch, JournalId, NamespaceInfo, NodeName, TxId
from journal.writer.channel import NodeChannel

log = structlog.get_logger()


async def purge(channels: Sequence[NodeChannel], minimum: TxId, timeout_seconds: float) -> None:
    """Queue a request on every node to purge the segments that end before ``minimum``."""
    call: QuorumCall[None] = QuorumCall(
        f"purging before {minimum}",
        [channel.name for channel in channels],
        timeout_seconds=timeout_seconds,
    )
    for channel in channels:

        async def one(channel: NodeChannel = channel) -> None:
            await channel.remote.purge_logs(channel.headers.info(), minimum, timeout_seconds)

        channel.ask(call, one)
    try:
        await call.outcome()
    except JournalError as failure:
        log.warning("journal.purge_failed", minimum=minimum, because=str(failure))


def ensure_none_formatted(
    journal_id: JournalId, formatted: Mapping[NodeName, bool | JournalError]
) -> None:
    """Raise BadRequest if a node is formatted, QuorumLost if one does not answer."""
    ensure_all_answered("formatting", formatted)
    if full := [node for node, has_storage in formatted.items() if has_storage is True]:
        raise BadRequest(
            f"the journal {journal_id} is already formatted on {', '.join(full)};"
            " formatting destroys its edits, and must be forced"
        )


async def format_all(
    channels: Sequence[NodeChannel],
    namespace: NamespaceInfo,
    timeout_seconds: float,
    *,
    force: bool,
) -> None:
    """Format every node; raise QuorumLost unless all succeed."""
    answers = await ask_each(
        channels, lambda channel: _format_node(channel, namespace, timeout_seconds, force=force)
    )
    ensure_all_answered("formatting", answers)


async def _format_node(
    channel: NodeChannel, namespace: NamespaceInfo, timeout_seconds: float, *, force: bool
) -> None:
    """Format one node; even with ``force`` not a journal that a writer has claimed since."""
    seen: Epoch | None = None
    seen_namespace_id: int | None = None
    if force:
        try:
            status = await channel.remote.status(timeout_seconds)
        except NotFormatted:
            seen = NO_EPOCH
        else:
            seen = Epoch(status.last_promised_epoch)
            seen_namespace_id = status.namespace_info.namespace_id
    await channel.remote.format(
        namespace,
        force=force,
        founding=True,
        timeout_seconds=timeout_seconds,
        seen_promised=seen,
        seen_namespace_id=seen_namespace_id,
    )


def ensure_all_answered(operation: str, answers: Mapping[NodeName, object]) -> None:
    """Raise QuorumLost unless every node has answered."""
    if failures := failed(answers):
        raise QuorumLost(
            f"{operation} needs all {len(answers)} JournalNodes; failed: {reasons(failures)}",
            failures=failures,
        )


async def settle(channel: NodeChannel, timeout_seconds: float) -> None:
    """Wait until all queued requests are answered or failed, or the time is over."""

    async def nothing() -> None:
        return

    call: QuorumCall[None] = QuorumCall("settling", [channel.name], timeout_seconds=timeout_seconds)
    channel.ask(call, nothing)
    with suppress(QuorumLost):
        await call.outcome()
