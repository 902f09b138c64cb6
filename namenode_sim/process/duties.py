"""What a NameNode does from time to time, and what it reports of that to systemd."""

import asyncio
import contextlib
from itertools import islice
from typing import Final

import structlog

from ha.daemon.notify import SERVICE
from ha.rpc.errors import RemoteFault
from namenode_sim.client_protocol.tokens.secret_manager import expired
from namenode_sim.metrics import TOKENS
from namenode_sim.process.client_service import ClientService
from namenode_sim.term.namenode import NameNode
from namenode_sim.term.role import Role

log = structlog.get_logger()

SILENT_SECONDS: Final = 60.0
"""Far longer than any wait for an answer of the journal: a duty that is silent for longer hangs."""
READY_WITHOUT_JOURNAL_SECONDS: Final = 10.0
"""How long systemd holds back what follows us if the journal cannot be followed."""
LOOK_SECONDS: Final = 0.05
TOKENS_LOOK_SECONDS: Final = 60.0
MOST_EXPIRED: Final = 1000
"""At one look: clients wait while their edits are made."""


def overdue(namenode: NameNode) -> str:
    """Return which duty has not moved for SILENT_SECONDS; empty where all is well.

    A standby follows the journal, an active writes it.  Failures count as done: they are reported
    elsewhere, and to start again mends none of them.
    """
    following = namenode.tailer.silent_seconds
    if following > SILENT_SECONDS:
        return f"following the journal has not moved for {following:.0f} s"
    edit_log = namenode.edit_log
    writing = 0.0 if edit_log is None else edit_log.silent_seconds
    if writing > SILENT_SECONDS:
        return f"a batch of edits has had no end for {writing:.0f} s"
    return ""


async def notify_when_ready(namenode: NameNode) -> None:
    """Report to systemd when this NameNode could take over.

    Blocks are not waited for: DataNodes may come later.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(READY_WITHOUT_JOURNAL_SECONDS):
            while namenode.tailer.trouble or namenode.lacking():  # noqa: ASYNC110 - two owners
                await asyncio.sleep(LOOK_SECONDS)
    SERVICE.ready()


async def roll_edits(namenode: NameNode, period_seconds: float) -> None:
    """Roll the active's edits from time to time: standbys see them without asking for it."""
    while True:
        await asyncio.sleep(period_seconds)
        namenode.roll_edits()


async def roll_long_segments(namenode: NameNode, look_seconds: float, most: float) -> None:
    """Roll early a segment of the active that has grown long (NameNodeEditLogRoller)."""
    while True:
        await asyncio.sleep(look_seconds)
        if namenode.edit_log is not None and namenode.edit_log.edits_in_segment > most:
            namenode.roll_edits()


async def release_leases(
    namenode: NameNode, client_service: ClientService, look_seconds: float
) -> None:
    while True:
        await asyncio.sleep(look_seconds)
        if namenode.state.role is Role.ACTIVE:
            await client_service.release_expired_leases()


async def expire_tokens(namenode: NameNode, client_service: ClientService) -> None:
    """Remove on the active the delegation tokens that were not renewed in time."""
    TOKENS.set_function(lambda: len(client_service.namespace.secrets.tokens))
    while True:
        await asyncio.sleep(TOKENS_LOOK_SECONDS)
        if namenode.state.role is Role.ACTIVE:
            remove_expired_tokens(client_service)


def remove_expired_tokens(client_service: ClientService) -> int:
    """Log and apply the ends of tokens, and return of how many; of none in safe mode."""
    if client_service.cluster.safe_mode.is_on():
        return 0
    now_ms = int(client_service.wall_clock() * 1000)
    ended = list(islice(expired(client_service.namespace.secrets, now_ms), MOST_EXPIRED))
    try:
        client_service.log_and_apply(ended)
    except RemoteFault as failure:
        log.info("tokens.not_expired", why=failure.reason)
        return 0
    if ended:
        log.info("tokens.expired", tokens=len(ended))
    return len(ended)
