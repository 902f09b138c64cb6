"""Serves the bytes of segments over HTTP (docs/reference/journal-node.md#segment-transfer)."""

import asyncio
from collections.abc import Callable, Sequence
from typing import BinaryIO, Final

import structlog
from aiohttp import web

from ha.daemon.in_thread import run_in_thread
from journal.core.state import Damage, JournalState
from journal.errors import StorageFailed
from journal.model import Segment, TxId
from journal.node import metrics
from journal.node.owner.owner import JournalOwner
from journal.node.repair.scrub import report
from journal.node.repair.throttle import Throttle
from journal.storage.files import RealFiles
from journal.storage.layout import why_bad_journal_id
from journal.storage.segment_file import SegmentCheck, sound_part

log = structlog.get_logger()

DIGEST_HEADER: Final = "X-Journal-Digest"
"""The SHA-256 of the framed edits in the answer, in hex, if the node knows it."""
DAMAGE_HEADER: Final = "X-Journal-Damaged"
"""Why this copy is damaged; the answer has only the edits before the damage."""
_MAX_REASON_CHARS: Final = 300
_CHUNK_BYTES: Final = 1 << 20
_OPEN_ATTEMPTS: Final = 3


class SegmentServer:
    """Serves GET /getJournal with Hadoop's parameters and answers (GetJournalEditServlet)."""

    def __init__(
        self, find: Callable[[str], JournalOwner | None], bytes_per_second: int = 0
    ) -> None:
        self._find = find
        self._bytes_per_second = bytes_per_second

    def routes(self) -> Sequence[web.RouteDef]:
        """Return the routes for the daemon's HTTP server."""
        return (web.get("/getJournal", self._get),)

    async def _get(self, request: web.Request) -> web.StreamResponse:
        journal_id = request.query.get("jid", "")
        bad = why_bad_journal_id(journal_id)
        if bad is not None:
            raise web.HTTPBadRequest(text=bad)
        owner = self._find(journal_id)
        if owner is None:
            raise web.HTTPNotFound(text=f"this node has no journal {journal_id}")
        _check_storage_info(owner.state, request.query.get("storageInfo"))
        text = request.query.get("segmentTxId", "")
        if not (text.isascii() and text.isdecimal()) or len(text) > 19:
            raise web.HTTPBadRequest(text=f"segmentTxId={text[:40]!r} is not a transaction id")
        first = TxId(int(text))
        damage = owner.state.damaged.get(first)
        if damage is not None:
            if request.query.get("damagedOk") != "true":
                raise _damage_answer(damage)
            return await _send_remains(request, owner, damage)
        in_progress_ok = request.query.get("inProgressOk") != "false"
        segment, file, end = await _open_segment(owner, first, in_progress_ok=in_progress_ok)
        try:
            throttle = Throttle(self._bytes_per_second)
            return await _stream(request, file, end, segment, owner, throttle)
        finally:
            await asyncio.to_thread(file.close)


def _check_storage_info(state: JournalState, claimed: str | None) -> None:
    """Raise HTTPForbidden if the request is for another namespace or cluster."""
    if state.namespace is None:
        return
    if claimed is None:
        raise web.HTTPForbidden(text="say which file system the request is about: storageInfo")
    parts = claimed.split(":", 3)
    ours = state.namespace
    if len(parts) != 4 or (parts[1], parts[3]) != (str(ours.namespace_id), ours.cluster_id):
        raise web.HTTPForbidden(
            text=f"this journal belongs to {ours.storage_info()}, the request to {claimed[:200]}"
        )


def _find_segment(state: JournalState, first: TxId) -> Segment | None:
    if state.open is not None and state.open.first == first:
        return None if state.open.empty else state.open.as_segment()
    return state.find(first)


async def _open_segment(
    owner: JournalOwner, first: TxId, *, in_progress_ok: bool
) -> tuple[Segment, BinaryIO, int]:
    """Open a segment's file; try again if it was finalized, and so renamed, just before."""
    for _ in range(_OPEN_ATTEMPTS):
        segment = _find_segment(owner.state, first)
        if segment is None or not (segment.finalized or in_progress_ok):
            raise web.HTTPNotFound(text=f"no segment of {owner.journal_id} starts at {first}")
        try:
            file, end = await owner.in_thread(_open, owner, segment)
        except FileNotFoundError:
            continue
        except (StorageFailed, OSError) as failure:
            if _find_segment(owner.state, first) != segment:
                continue  # it was purged or finalized before it could be opened
            raise web.HTTPInternalServerError(text=str(failure)) from failure
        return segment, file, end
    raise web.HTTPInternalServerError(text=f"the file of segment {first} is gone")


def _damage_answer(damage: Damage) -> web.HTTPServiceUnavailable:
    """Build the answer for a damaged copy.

    It is not 404: the segment exists, and a sync may replace this copy by a peer's at any time.
    """
    return web.HTTPServiceUnavailable(
        reason="Damaged",
        text=f"our copy of {damage.segment.name()} is damaged: {damage.why}. What stands before "
        "the damage is given with damagedOk=true",
        headers={DAMAGE_HEADER: _as_header(damage.why)},
    )


def _as_header(why: str) -> str:
    text = why.encode("ascii", "replace").decode()
    return "".join(char if char.isprintable() else " " for char in text)[:_MAX_REASON_CHARS]


async def _send_remains(
    request: web.Request, owner: JournalOwner, damage: Damage
) -> web.StreamResponse:
    """Send the edits before the damage, which a rescue requests with damagedOk=true."""
    try:
        path = owner.disk.path_of(damage.segment)
        end = await asyncio.to_thread(sound_part, RealFiles(), path, damage.segment)
        if end is None:
            raise _damage_answer(damage)
        file = await run_in_thread(lambda: path.open("rb"), lambda opened: opened.close())
    except OSError:
        raise _damage_answer(damage) from None
    response = web.StreamResponse(
        headers={
            "Content-Type": "application/octet-stream",
            DAMAGE_HEADER: _as_header(damage.why),
        }
    )
    response.content_length = left = end
    try:
        await response.prepare(request)
        while left and (chunk := await asyncio.to_thread(file.read, min(left, _CHUNK_BYTES))):
            left -= len(chunk)
            await response.write(chunk)
    finally:
        await asyncio.to_thread(file.close)
    if left:
        request.protocol.force_close()
        return response
    await response.write_eof()
    return response


def _open(owner: JournalOwner, segment: Segment) -> tuple[BinaryIO, int]:
    extent = owner.disk.extent(segment)
    return extent.path.open("rb"), extent.end


async def _stream(
    request: web.Request,
    file: BinaryIO,
    end: int,
    segment: Segment,
    owner: JournalOwner,
    throttle: Throttle,
) -> web.StreamResponse:
    """Send the bytes up to ``end``, without padding or bytes that are not durable yet.

    A closed segment is checked while it is sent.  At damage the answer ends before its announced
    length, so that the reader does not use it, and the segment is reported as damaged.
    """
    name, journal_id = segment.name(), owner.journal_id
    check = check_of(owner.state, segment)
    response = web.StreamResponse(
        headers={
            "Content-Type": "application/octet-stream",
            "Content-Disposition": f"attachment; filename={name}",
            "X-Image-Edits-Name": name,
        }
    )
    if segment.digest:
        response.headers[DIGEST_HEADER] = segment.digest.hex()
    response.content_length = end
    await response.prepare(request)
    left, damaged = end, False
    while left:
        chunk = await asyncio.to_thread(file.read, min(left, _CHUNK_BYTES))
        left -= len(chunk)
        try:
            chunk = _sound(check, chunk, left)
        except ValueError as damage:
            await report_served(owner, segment, str(damage))
            damaged = True
            break
        await throttle.spend(len(chunk))
        await response.write(chunk)
    if damaged:
        request.protocol.force_close()
        return response
    metrics.SERVED_BYTES.labels(journal_id).inc(end)
    await response.write_eof()
    return response


def check_of(state: JournalState, segment: Segment) -> SegmentCheck | None:
    """Return the check of a segment that is sent; None if it is open or its digest is unknown.

    Bad schedule: only one node has a segment's last edits, and a bit of them rots.  Each recovery
    chooses that copy, and no other node can fetch it, unless this node notices the damage here.
    """
    closed = segment.finalized or state.open is None or state.open.first != segment.first
    return SegmentCheck(segment) if closed and segment.digest else None


async def report_served(owner: JournalOwner, segment: Segment, why: str) -> None:
    """Report a segment as damaged, if this node still has that copy of it."""
    if segment.finalized or owner.state.find(segment.first) == segment:
        await report(owner, segment, why)


def _sound(check: SegmentCheck | None, chunk: bytes, left: int) -> bytes:
    """Return the checked bytes, which may be sent; raise ValueError if the file is damaged."""
    if left and not chunk:
        raise ValueError(f"{left} bytes are missing at its end")
    if check is None:
        return chunk
    sound = check.feed(chunk)
    if not left:
        check.finish()
    return sound
