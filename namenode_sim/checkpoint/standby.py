"""The standby's checkpoints: save the namespace, ship it to the active, forget old images."""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import structlog

from ha.conf.topology import HostPort
from ha.record import dataclass
from hadoop.errors import StorageError
from journal.model import TxId
from namenode_sim import metrics
from namenode_sim.checkpoint import schedule
from namenode_sim.checkpoint.image_upload import UploadFailed, upload_image
from namenode_sim.checkpoint.schedule import note_answer, note_saved
from namenode_sim.image.errors import ImageError
from namenode_sim.storage.storage import NameStorage
from namenode_sim.term.namenode import NameNode
from namenode_sim.term.role import Role

log = structlog.get_logger()


class CheckpointAbandoned(Exception):
    """The NameNode is to become active; nothing of the image is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadSettings:
    """How images are shipped: dfs.image.transfer.timeout and .bandwidthPerSec."""

    stall_seconds: float = 60.0
    bytes_per_second: int = 50 * 1024 * 1024


class StandbyCheckpointer:
    """Looks now and then whether a checkpoint is due, as long as its task runs.

    Saving happens in a thread while the tailer stands still, so that nothing changes the namespace
    under it.  A transition to active ends it at once and throws the unfinished image away: a
    failover must not wait for a checkpoint (Hadoop: cancelAndPreventCheckpoints).
    """

    def __init__(
        self,
        namenode: NameNode,
        storage: NameStorage,
        others: Mapping[str, HostPort],
        *,
        rules: schedule.CheckpointRules,
        upload: UploadSettings,
    ) -> None:
        self._namenode = namenode
        self._storage = storage
        self._others = others
        self._rules = rules
        self._upload = upload
        self._abandon = threading.Event()
        newest = storage.newest_txid()
        metrics.CHECKPOINT_TXID.set(newest)
        metrics.CHECKPOINT_PENDING.set_function(
            lambda: namenode.namespace.last_applied - self._state.last_txid
        )
        self._state = schedule.CheckpointState(last_at=time.monotonic(), last_txid=newest)
        self._told: dict[str, object] = {"txid": newest, "at": _saved_at(storage), "problem": ""}
        namenode.listen_for_roles(self._role_changed)

    async def run(self) -> None:
        """Work until cancelled.  An unforeseen error costs one look, not all that would follow."""
        try:
            while True:
                await asyncio.sleep(self._rules.pause_seconds)
                try:
                    await self.look()
                except Exception as failure:
                    metrics.CHECKPOINTS.labels("failed").inc()
                    self._told["problem"] = f"{type(failure).__name__}: {failure}"
                    log.exception("checkpoint.broken")
        finally:
            self._abandon.set()

    def status(self) -> Mapping[str, object]:
        """Return the newest image and what went wrong last, for /status."""
        return dict(self._told)

    async def look(self) -> None:
        """Save the namespace once if that is due, then ship what others lack."""
        if self._namenode.state.role is not Role.STANDBY:
            return
        self._adopt_newer()
        applied = self._namenode.namespace.last_applied
        why = schedule.due_reason(self._state, self._rules, applied, time.monotonic())
        if why:
            await self._save(why)
        if self._namenode.state.role is Role.STANDBY and self._state.last_txid:
            await self._ship()

    def _adopt_newer(self) -> None:
        """Take over another's newer image, which may have come while we were active."""
        newest = self._storage.newest_txid()
        if newest > self._state.last_txid:
            self._told |= {"txid": newest, "at": _saved_at(self._storage)}
            self._state = note_saved(self._state, newest, time.monotonic())

    async def _save(self, why: str) -> None:
        log.info("checkpoint.begun", because=why)
        self._abandon.clear()
        began = time.monotonic()
        try:
            async with self._namenode.tailer.still:  # a role that changes until then ends it, too
                txid = self._namenode.namespace.last_applied
                # The thread must have ended before the lock goes, whoever cancels us.
                path = await to_its_end(self._save_blocking, self._abandon)
        except CheckpointAbandoned:
            metrics.CHECKPOINTS.labels("abandoned").inc()
            log.info("checkpoint.abandoned", because="the NameNode is to become active")
        except (OSError, ImageError, StorageError) as failure:
            metrics.CHECKPOINTS.labels("failed").inc()
            self._told["problem"] = str(failure)
            log.warning("checkpoint.failed", because=str(failure))
        else:
            seconds = time.monotonic() - began
            metrics.CHECKPOINTS.labels("saved").inc()
            metrics.CHECKPOINT_DURATION.observe(seconds)
            metrics.CHECKPOINT_TXID.set(txid)
            metrics.CHECKPOINT_SUCCESS.set_to_current_time()
            self._told = {"txid": txid, "at": _clock(), "problem": ""}
            self._state = note_saved(self._state, txid, time.monotonic())
            log.info("checkpoint.saved", image=path.name, txid=txid, seconds=round(seconds, 3))

    def _save_blocking(self) -> Path:
        return self._storage.save(self._namenode.namespace, self._check)

    def _check(self) -> None:
        if self._abandon.is_set():
            raise CheckpointAbandoned

    async def _ship(self) -> None:
        names = schedule.targets_for(
            self._state, self._rules, tuple(self._others), time.monotonic()
        )
        if not names:
            return
        txid = self._state.last_txid
        try:
            image = self._storage.newest_image()
        except StorageError as failure:
            self._told["problem"] = str(failure)
            log.warning("checkpoint.not_shipped", because=str(failure))
            return
        answers = await asyncio.gather(*(self._offer(name, image, txid) for name in names))
        for name, answer in zip(names, answers, strict=True):
            metrics.UPLOADS.labels(answer.name.lower()).inc()
            self._state = note_answer(self._state, name, txid, answer, time.monotonic())

    async def _offer(self, name: str, image: Path, txid: TxId) -> schedule.UploadAnswer:
        try:
            return await upload_image(
                self._others[name],
                image,
                txid,
                self._storage.namespace_info,
                stall_seconds=self._upload.stall_seconds,
                bytes_per_second=self._upload.bytes_per_second,
            )
        except (UploadFailed, ImageError, OSError) as failure:
            self._told["problem"] = str(failure)
            log.warning("checkpoint.not_shipped", to=name, because=str(failure))
            return schedule.UploadAnswer.FAILED

    def _role_changed(self, role: Role) -> None:
        if role is not Role.STANDBY:
            self._abandon.set()


async def to_its_end(save: Callable[[], Path], abandon: threading.Event) -> Path:
    """Run ``save`` in a thread; a cancelled caller still waits for it, after telling it to end."""
    work = asyncio.ensure_future(asyncio.to_thread(save))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        abandon.set()
        await asyncio.gather(work, return_exceptions=True)
        raise


def _saved_at(storage: NameStorage) -> str | None:
    """Return when the newest image was written, by its file; None where there is none."""
    try:
        seconds = storage.newest_image().stat().st_mtime
    except (StorageError, OSError):
        return None
    return _time_text(datetime.fromtimestamp(seconds, UTC))


def _clock() -> str:
    return _time_text(datetime.now(UTC))


def _time_text(moment: datetime) -> str:
    """Return a time as RFC 3339, in UTC with milliseconds."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
