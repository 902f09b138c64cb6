"""Reads finalized segments again in the background, and compares them with their digests.

See docs/reference/journal-node.md#background-sync.
"""

import asyncio
import errno
from pathlib import Path
from typing import Final

import structlog

from journal.core.requests import LearnDigest, ReportDamage
from journal.errors import JournalError, StorageFailed
from journal.model import Segment
from journal.node import metrics
from journal.node.owner.owner import JournalOwner
from journal.node.repair.throttle import Throttle
from journal.node.settings import NodeSettings
from journal.storage.segment_file import SegmentCheck

log = structlog.get_logger()

_CHUNK_BYTES: Final = 1 << 18
_NO_MEANS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors for which the process is the reason, not the file: no descriptors, no memory."""


async def scrub_forever(owner: JournalOwner, settings: NodeSettings) -> None:
    """Scrub the journal in each interval, until the task is cancelled or the journal has failed."""
    while owner.failed_because is None:
        await asyncio.sleep(settings.scrub_interval_seconds)
        try:
            await scrub(owner, settings.scrub_bytes_per_second)
        except JournalError as failure:
            log.warning("scrub.round_failed", journal=owner.journal_id, because=str(failure))
        except Exception:
            # As in JournalSync.run: a bug in one round must not end the scrubbing for good.
            log.exception("scrub.unexpected", journal=owner.journal_id)


async def scrub(owner: JournalOwner, bytes_per_second: int) -> int:
    """Read each finalized segment once, and return how many are damaged.

    Raises:
        StorageFailed: the process has no descriptors or memory to read files, or has failed.
    """
    throttle = Throttle(bytes_per_second)
    found = 0
    for segment in [one for one in owner.state.segments.values() if one.finalized]:
        if not segment.digest:
            await owner.ask(LearnDigest(segment.first))  # it also records damage
            found += segment.first in owner.state.damaged
            continue
        why = await _why_damaged(owner.disk.path_of(segment), segment, throttle)
        if why is not None and owner.state.find(segment.first) == segment:
            await report(owner, segment, why)
            found += 1
        metrics.SCRUBBED.labels(owner.journal_id).inc()
    return found


async def report(owner: JournalOwner, segment: Segment, why: str) -> None:
    """Record that a segment is damaged: it is not served until a peer's copy replaces it."""
    metrics.CORRUPT.labels(owner.journal_id).inc()
    log.error("segment.damaged", journal=owner.journal_id, segment=segment.name(), because=why)
    await owner.ask(ReportDamage(segment.first, why))


async def report_missing(owner: JournalOwner) -> None:
    """Report the finalized segments whose files were deleted while the node was running."""
    listed = owner.state.segments
    names = set(await owner.in_thread(owner.disk.names))
    for segment in listed.values():
        gone = segment.finalized and segment.name() not in names
        if gone and owner.state.find(segment.first) == segment:
            await report(owner, segment, "its file is gone")


async def _why_damaged(path: Path, segment: Segment, throttle: Throttle) -> str | None:
    check = SegmentCheck(segment)
    offset = 0
    try:
        while not check.complete:
            chunk = await asyncio.to_thread(_read, path, offset)
            if not chunk:
                break
            offset += len(chunk)
            check.feed(chunk)
            await throttle.spend(len(chunk))
        check.finish()
    except (OSError, ValueError) as damage:
        if isinstance(damage, OSError) and damage.errno in _NO_MEANS:
            raise StorageFailed(f"no segment can be read: {damage}") from damage
        return str(damage)
    return None


def _read(path: Path, offset: int) -> bytes:
    """Open the file, read one chunk and close it: a cancelled scrubber leaves no file open."""
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(_CHUNK_BYTES)
