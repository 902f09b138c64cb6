"""PUT /imagetransfer: the active takes a checkpoint from a standby or a merge.

Unlike Hadoop, an upload that is refused leaves nothing in the list of those under way, and one that
was planned under an older epoch of the journal than ours is refused.

See docs/reference/namenode.md#accepting-an-image.
"""

import asyncio
import re
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import structlog
from aiohttp import web

from ha.daemon.in_thread import run_in_thread
from ha.record import dataclass
from hadoop.errors import StorageError
from journal.model import Epoch, NamespaceInfo, TxId
from namenode_sim.checkpoint.image_upload import EPOCH_PARAMETER, REFUSAL_HEADER, SUPERSEDED
from namenode_sim.image.files import image_name
from namenode_sim.metrics import IMAGES_RECEIVED
from namenode_sim.storage.storage import NameStorage
from namenode_sim.transfer.image_intake import ImageDamaged, ImageIntake
from namenode_sim.transfer.image_request import IMAGE_KINDS, PATH

log = structlog.get_logger()

RECENT_SHARE: Final = 0.75
"""An image that follows the last one sooner than this share of the period is not needed."""
_CHUNK_BYTES: Final = 1024 * 1024
_DIGEST = re.compile(r"[0-9a-f]{32}")
_NUMBER = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Offer:
    """An image that somebody wants to send."""

    txid: TxId
    size: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipient:
    """What the receiver asks of its NameNode."""

    active: Callable[[], bool]
    epoch: Callable[[], Epoch | None]
    written_to: Callable[[], TxId]
    """The last edit of an active: no image can hold more."""
    received: Callable[[TxId, int], None]
    """Called with each new image's txid, and the number of directories that have it."""
    follows_to: Callable[[], TxId | None] = lambda: None
    """The last edit that a standby has applied which makes no images itself; else None."""
    fewest_inodes: Callable[[], int] = lambda: 0
    """Fewer are suspicious: an image that has them is compared with the newest one."""


class ImageReceiver:
    """Judges offers and receives those that are wanted, one at a time."""

    def __init__(
        self,
        storage: NameStorage,
        recipient: Recipient,
        *,
        period_seconds: float = 3600.0,
        edits: int = 1_000_000,
        stall_seconds: float = 60.0,
    ) -> None:
        self._storage = storage
        self._recipient = recipient
        self._recent_seconds = RECENT_SHARE * period_seconds
        self._edits = edits
        self._stall_seconds = stall_seconds
        self._under_way: TxId | None = None
        self._received_at: float | None = None

    def route(self) -> web.RouteDef:
        return web.put(PATH, self._put, expect_handler=self._expect)

    async def _expect(self, request: web.Request) -> None:
        """Refuse before the body is sent."""
        self._judge(request)
        writer = request.transport
        if writer is not None:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    async def _put(self, request: web.Request) -> web.Response:
        offer = self._judge(request)
        # One at a time: what is deleted after one would include the other's unfinished files.
        self._under_way = offer.txid
        try:
            return await self._receive(request, offer)
        finally:
            self._under_way = None

    async def _receive(self, request: web.Request, offer: Offer) -> web.Response:
        began = time.monotonic()
        intake = None
        try:
            fewest = self._recipient.fewest_inodes()
            intake = await run_in_thread(
                partial(ImageIntake, self._storage, offer.txid, shrink_to=fewest),
                ImageIntake.discard,
            )
            received = 0
            while received <= offer.size:
                async with asyncio.timeout(self._stall_seconds):
                    chunk = await request.content.read(_CHUNK_BYTES)
                if not chunk:
                    break
                received += len(chunk)
                await run_in_thread(partial(intake.feed, chunk))
            # A long transfer may have outlived our term, and the standby may have saved as much.
            self._require_fit(request, offer.txid)
            self._require_newer(offer.txid)
            copies = await run_in_thread(partial(intake.publish, offer.size, offer.digest))
        except (OSError, TimeoutError, ImageDamaged, StorageError) as failure:
            told = str(failure) or f"nothing came for {self._stall_seconds:g} s"
            log.warning("image.not_received", txid=offer.txid, because=told)
            raise web.HTTPGone(text=told) from failure
        finally:
            if intake is not None:
                await run_in_thread(intake.discard)
        self._received_at = time.monotonic()
        IMAGES_RECEIVED.inc()
        log.info(
            "image.received",
            txid=offer.txid,
            bytes=offer.size,
            directories=copies,
            seconds=round(self._received_at - began, 3),
            sent_by=request.remote,
        )
        self._recipient.received(offer.txid, copies)
        return web.Response(text=f"{image_name(offer.txid)} is in {copies} directories")

    def _judge(self, request: web.Request) -> Offer:
        offer = _offer(request, self._storage.namespace_info)
        self._require_fit(request, offer.txid)
        if self._under_way is not None:
            raise web.HTTPConflict(text=f"the image up to {self._under_way} is on its way here")
        newest = self._require_newer(offer.txid)
        since = None if self._received_at is None else time.monotonic() - self._received_at
        recent = since is not None and since < self._recent_seconds
        if recent and offer.txid - newest < self._edits:
            raise web.HTTPConflict(
                text=f"the image up to {newest} came {since:.0f} s ago, and {offer.txid - newest} "
                f"edits more are fewer than {self._edits}"
            )
        directory, free = _room(self._storage.directories)
        if offer.size > free:
            raise web.HTTPGone(
                text=f"the image has {offer.size} bytes, and {directory} has {free} left"
            )
        return offer

    def _require_newer(self, txid: TxId) -> TxId:
        """Return the txid of the newest image that is here, which must be older."""
        newest = self._storage.newest_txid()
        if newest >= txid:
            raise web.HTTPConflict(text=f"there is an image up to {newest} here")
        return newest

    def _require_fit(self, request: web.Request, txid: TxId) -> None:
        """Check that an active gets no image planned under another epoch; one without is accepted.

        A standby that saves no images takes one that its own replay has reached: the journal has
        the same edits.  An image with an epoch is meant for an active.
        """
        planned = request.query.get(EPOCH_PARAMETER)
        if not self._recipient.active():
            applied = self._recipient.follows_to()
            if planned is None and applied is not None and txid <= applied:
                return
            raise web.HTTPExpectationFailed(text="this NameNode is not active")
        epoch = self._recipient.epoch()
        if planned is not None and (epoch is None or planned != str(epoch)):
            # Its planner may have read a journal that our recovery has cut since.
            raise web.HTTPGone(
                text=f"the checkpoint was planned under epoch {planned[:20]}, and this NameNode "
                f"writes under {epoch}; plan it anew",
                headers={REFUSAL_HEADER: SUPERSEDED},
            )
        written = self._recipient.written_to()
        if txid > written:
            # Behind such an image all that was ever written would be deleted as superfluous.
            log.warning("image.refused", sent_by=request.remote, txid=txid, written_to=written)
            raise web.HTTPGone(
                text=f"an image up to {txid} cannot be of this file system: its active NameNode "
                f"has written up to {written}"
            )


def _room(directories: Sequence[Path]) -> tuple[Path, int]:
    """Return the first directory that can be asked, and its free bytes.

    A write drops those that fail.
    """
    for directory in directories:
        with suppress(OSError):
            return directory, shutil.disk_usage(directory).free
    return directories[0], 0


def _offer(request: web.Request, info: NamespaceInfo) -> Offer:
    query, digest = request.query, request.headers.get("X-MD5-Digest", "")
    numbers = [query.get(name, "") for name in ("txid", "File-Length")]
    if not all(_NUMBER.fullmatch(text) and int(text) for text in numbers):
        raise web.HTTPGone(
            text=f"txid and File-Length must be numbers above 0, found {numbers[0][:40]!r} and "
            f"{numbers[1][:40]!r}"
        )
    claimed = query.get("storageInfo")
    if claimed is None:
        raise web.HTTPGone(text="storageInfo is missing")
    if claimed != info.storage_info():
        log.warning("image.refused", sent_by=request.remote, claimed=claimed[:200])
        raise web.HTTPForbidden(
            text=f"this NameNode belongs to {info.storage_info()}, the image to {claimed[:200]}"
        )
    kind = query.get("imageFile", "IMAGE")
    if kind not in IMAGE_KINDS or kind != "IMAGE":
        raise web.HTTPGone(text=f"an image of the kind {kind[:40]!r} is not taken here")
    if not _DIGEST.fullmatch(digest):
        raise web.HTTPGone(text="X-MD5-Digest is missing: nobody could tell whether all came")
    return Offer(TxId(int(numbers[0])), int(numbers[1]), digest)
