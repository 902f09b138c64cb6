"""The journals of one JournalNode: loads, formats and finds them, and completes recoveries."""

import asyncio
import shutil
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import structlog

from ha.daemon.in_thread import run_in_thread
from ha.daemon.lazy_import import load_late
from journal.core.machine import step
from journal.core.replies import Fetch, Resumed
from journal.core.requests import AcceptRecovery, AdoptCatchUp, AdoptRecovery, CatchUp, Format
from journal.core.state import JournalState
from journal.errors import BadRequest, JournalError, NotFormatted, OutOfSync, StorageFailed
from journal.lane import TakenLanes
from journal.model import NO_TXID, JournalId, TxId
from journal.node import folders, metrics
from journal.node.owner.edits_cache import EditsCache
from journal.node.owner.owner import JournalOwner
from journal.node.peers import Own
from journal.node.repair.scrub import scrub_forever
from journal.node.repair.sources import require_peers
from journal.node.repair.sync import JournalSync
from journal.node.settings import NodeSettings
from journal.storage.disk import Disk
from journal.storage.layout import why_bad_journal_id
from journal.storage.lock import StorageLock

log = structlog.get_logger()
T = TypeVar("T")

DISK_SAMPLE_SECONDS: Final = 5.0


class _Open:
    """An open journal with its storage lock, its folder and its background tasks."""

    def __init__(self, owner: JournalOwner, lock: StorageLock, root: Path) -> None:
        self.owner = owner
        self.lock = lock
        self.root = root
        self.free_bytes = 0
        self.total_bytes = 0
        self.disk_warning: str | None = None
        self.upkeep: list[asyncio.Task[None]] = []
        self.sync: JournalSync | None = None

    @property
    def waits_for(self) -> str | None:
        """What a learner lacks for its vote; None for a voter."""
        if not self.owner.state.learner:
            return None
        return "a writer's word" if self.sync is None else self.sync.admission.waits_for


class JournalNode:
    """All journals of a node; only ``format`` creates one, a read of an unknown name does not."""

    def __init__(self, settings: NodeSettings) -> None:
        self.settings = settings
        self.http_port = 0
        self.lanes: TakenLanes | None = None
        self._journals: dict[str, _Open] = {}
        self._creating = asyncio.Lock()
        self._fetching: set[tuple[JournalId, TxId]] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._sampler: asyncio.Task[None] | None = None
        self._own: Own | None = None

    async def load(self) -> None:
        """Open all journals in the node's folders.

        Raises:
            StorageFailed: a folder cannot be used, or a journal in it is corrupt or locked; all
                journals are closed again then.
        """
        try:
            await self._load()
        except BaseException:
            await self.stop()
            raise

    async def _load(self) -> None:
        for folder in self.settings.all_folders():
            await self._prepare(folder)
            for root in await run_in_thread(partial(folders.journal_folders, folder)):
                if root.name in self._journals:
                    raise StorageFailed(
                        f"journal {root.name} lies in {self._journals[root.name].root} and in "
                        f"{root}. Remove the one that dfs.journalnode.edits.dir does not mean."
                    )
                await self._open(JournalId(root.name), root)
        self._sampler = asyncio.create_task(self._sample_disks(), name="disk space")

    async def stop(self) -> None:
        """Cancel downloads and background tasks, finish the current requests, close the files."""
        if self._sampler is not None:
            self._sampler.cancel()
        upkeep = [task for opened in self._journals.values() for task in opened.upkeep]
        for task in (*self._tasks, *upkeep):
            task.cancel()  # only downloads end: the owner carries out each request completely
        waiting = [*self._tasks, *upkeep, *([self._sampler] if self._sampler is not None else [])]
        await asyncio.gather(*waiting, return_exceptions=True)
        for opened in self._journals.values():
            await opened.owner.stop()
            opened.lock.release()
        self._journals.clear()

    def begin_upkeep(self, own: Own) -> None:
        """Start to scrub and sync all journals; ``own`` distinguishes this node from its peers."""
        self._own = own
        for opened in self._journals.values():
            self._begin_upkeep(opened)

    def _begin_upkeep(self, opened: _Open) -> None:
        if self._own is not None and self.settings.scrub_interval_seconds > 0:
            scrubbing = scrub_forever(opened.owner, self.settings)
            opened.upkeep.append(asyncio.create_task(scrubbing, name="scrub"))
        nodes = self.settings.peers.get(opened.owner.journal_id, ())
        if self._own is None or not nodes:
            return
        opened.sync = JournalSync(opened.owner, nodes, self._own, self.settings)
        syncing = opened.sync.run()
        opened.upkeep.append(asyncio.create_task(syncing, name=f"sync {opened.owner.journal_id}"))

    def find(self, journal_id: str) -> JournalOwner | None:
        """Return the owner of a journal, or None if this node does not have the journal."""
        opened = self._journals.get(journal_id)
        return None if opened is None else opened.owner

    def owner_of(self, journal_id: str) -> JournalOwner:
        """Return the owner of a journal; raises NotFormatted if this node does not have it."""
        owner = self.find(journal_id)
        if owner is None:
            raise NotFormatted(
                f"this node has no journal {journal_id[:100]!r}: it is not formatted; if the other"
                " nodes hold it, this one lost its storage: nnha journal format --node HOST:PORT"
            )
        return owner

    def owners(self) -> Sequence[JournalOwner]:
        """Return the owners of all journals, sorted by name."""
        return [opened.owner for _, opened in sorted(self._journals.items())]

    def disk_warning(self, journal_id: JournalId) -> str | None:
        """Return the warning of low space on a journal's disk, or None."""
        return self._journals[journal_id].disk_warning

    def disk_bytes(self, journal_id: JournalId) -> tuple[int, int]:
        """Return free and total bytes of a journal's disk, sampled each ``DISK_SAMPLE_SECONDS``."""
        opened = self._journals[journal_id]
        return opened.free_bytes, opened.total_bytes

    async def format(self, journal_id: str, nameservice_id: str, request: Format) -> None:
        """Format a journal, and create its folder; completed even if the caller is cancelled."""
        bad = why_bad_journal_id(journal_id)
        if bad is not None:
            raise BadRequest(bad)
        await self._to_the_end(self._format(JournalId(journal_id), nameservice_id, request))

    async def accept(
        self, owner: JournalOwner, request: AcceptRecovery, urls: Sequence[str]
    ) -> None:
        """Accept a recovery; during the download from ``urls`` other requests are served."""
        await self._to_the_end(self._accept(owner, request, urls))

    async def catch_up(self, owner: JournalOwner, request: CatchUp, urls: Sequence[str]) -> TxId:
        """Download the missing edits of the writer's open segment; return the next txid."""
        return await self._to_the_end(self._catch_up(owner, request, urls))

    def status(self) -> Mapping[str, object]:
        """Return the fields of each journal on the page /status."""
        return {name: _journal_status(opened) for name, opened in sorted(self._journals.items())}

    def why_unwell(self) -> str | None:
        """Return the first reason why this node does not serve all of its journals, or None."""
        for name, opened in sorted(self._journals.items()):
            if opened.owner.failed_because is not None:
                return f"journal {name}: {opened.owner.failed_because}"
        return None

    def why_not_ready(self) -> str | None:
        """Return the first reason why the node is not ready to be counted in a quorum, or None.

        A journal that is not formatted is no reason: it is formatted after all nodes have started.
        """
        unwell = self.why_unwell()
        if unwell is not None:
            return unwell
        for name, opened in sorted(self._journals.items()):
            state = opened.owner.state
            if state.learner:
                return f"journal {name}: a learner, without a vote; it waits: {opened.waits_for}"
            if state.claimed > state.last_written:
                return (
                    f"journal {name}: out of sync; {state.claimed} is committed, and this node has "
                    f"edits up to {max(0, state.last_written)}"
                )
        return None

    async def _format(self, journal_id: JournalId, nameservice_id: str, request: Format) -> None:
        async with self._creating:
            if self.find(journal_id) is None:
                step(JournalState(), request)  # raises for a bad request before a folder exists
                self._ensure_wanted(journal_id)
                root = self.settings.folder_of(nameservice_id) / journal_id
                await self._prepare(root)
                await self._open(journal_id, root)
            await self._journals[journal_id].owner.ask(request)

    def _ensure_wanted(self, journal_id: JournalId) -> None:
        """Raise BadRequest if the configuration names other journals, or there are too many."""
        named, limit = self.settings.journal_ids, self.settings.max_journals
        if named and journal_id not in named:
            raise BadRequest(
                f"this node keeps the journals {', '.join(sorted(named))}, and makes no other: add "
                f"{journal_id[:100]!r} to dfs.namenode.shared.edits.dir in its configuration"
            )
        if not named:
            limit = min(limit, self.settings.max_unnamed_journals)
        if len(self._journals) >= limit:
            raise BadRequest(f"this node keeps at most {limit} journals")

    async def _prepare(self, folder: Path) -> None:
        await run_in_thread(partial(folders.prepare_folder, folder, self.settings.folder_mode))

    async def _open(self, journal_id: JournalId, root: Path) -> None:
        lock = await run_in_thread(partial(StorageLock, root), StorageLock.release)
        disk = Disk(root)
        try:
            state = await run_in_thread(disk.load)
        except BaseException:
            lock.release()
            raise
        room = self.settings.edits_cache_bytes
        owner = JournalOwner(
            journal_id,
            disk,
            state,
            EditsCache(room) if room else None,
            max_read_lease_seconds=self.settings.max_read_lease_seconds,
        )
        opened = _Open(owner, lock, root)
        self._journals[journal_id] = opened
        await _sample(journal_id, opened, self.settings.disk_warn_free_bytes)
        self._begin_upkeep(opened)
        log.info(
            "journal.opened",
            journal=journal_id,
            formatted=state.namespace is not None,
            promised=state.promised,
            segments=len(state.segments),
            last_txid=state.last_written,
        )

    async def _accept(
        self, owner: JournalOwner, request: AcceptRecovery, urls: Sequence[str]
    ) -> None:
        try:
            reply = await owner.ask(request)
            if isinstance(reply, Fetch):
                with self._one_download(owner, reply.segment.first):
                    await self._fetch(owner, reply, urls)
                    await owner.ask(AdoptRecovery(reply.epoch, reply.segment))
        except JournalError:
            metrics.RECOVERIES.labels(owner.journal_id, "failed").inc()
            raise
        result = "fetched" if isinstance(reply, Fetch) else "kept"
        metrics.RECOVERIES.labels(owner.journal_id, result).inc()

    async def _catch_up(self, owner: JournalOwner, request: CatchUp, urls: Sequence[str]) -> TxId:
        reply = await owner.ask(request)
        if isinstance(reply, Fetch):
            with self._one_download(owner, reply.segment.first):
                size = await self._fetch(owner, reply, urls)
                adopted = AdoptCatchUp(reply.epoch, reply.segment, request.layout_version, size)
                reply = await owner.ask(adopted)
        assert isinstance(reply, Resumed)
        return reply.next_txid

    async def _fetch(self, owner: JournalOwner, wanted: Fetch, urls: Sequence[str]) -> int:
        await require_peers(owner.journal_id, urls, self.settings)
        # Loaded here: only a node without the edits needs an HTTP client.
        await load_late("aiohttp")
        from journal.node.repair.segment_fetch import fetch_decided

        return await fetch_decided(owner, wanted, urls, self.settings)

    @contextmanager
    def _one_download(self, owner: JournalOwner, first: TxId) -> Iterator[None]:
        """Allow one download per segment: a second would truncate the file of the first."""
        key = (owner.journal_id, first)
        if key in self._fetching:
            raise OutOfSync(f"segment {first} is being fetched already")
        self._fetching.add(key)
        try:
            yield
        finally:
            self._fetching.discard(key)

    async def _to_the_end(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` in a task that goes on when the caller is cancelled."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task)

    async def _sample_disks(self) -> None:
        while True:
            await asyncio.sleep(DISK_SAMPLE_SECONDS)
            for name, opened in list(self._journals.items()):
                await _sample(JournalId(name), opened, self.settings.disk_warn_free_bytes)


async def _sample(journal_id: JournalId, opened: _Open, warn_below: int) -> None:
    try:
        usage = await run_in_thread(partial(shutil.disk_usage, opened.root))
    except OSError as failure:
        log.warning("disk.space_unknown", journal=journal_id, because=str(failure))
        return
    opened.free_bytes, opened.total_bytes = usage.free, usage.total
    metrics.DISK_FREE.labels(journal_id).set(usage.free)
    metrics.DISK_TOTAL.labels(journal_id).set(usage.total)
    warning = None
    if usage.free < warn_below:
        warning = (
            f"{usage.free} bytes are left in {opened.root}, less than {warn_below}; the journal "
            "stops when it is full"
        )
    if (warning is None) != (opened.disk_warning is None):
        # One log line when space becomes low, and one when there is enough again.
        tell = log.info if warning is None else log.warning
        tell(
            "disk.enough_space" if warning is None else "disk.low",
            journal=journal_id,
            free_bytes=usage.free,
            warn_below=warn_below,
        )
    opened.disk_warning = warning
    metrics.DISK_LOW.labels(journal_id).set(warning is not None)


def _journal_status(opened: _Open) -> Mapping[str, object]:
    state = opened.owner.state
    return {
        "formatted": state.namespace is not None,
        "cluster_id": None if state.namespace is None else state.namespace.cluster_id,
        "promised_epoch": state.promised,
        "writer_epoch": state.writer,
        "committed_txid": None if state.committed == NO_TXID else state.committed,
        "last_txid": None if state.last_written == NO_TXID else state.last_written,
        "open_segment": None if state.open is None else state.open.first,
        "segments": len(state.segments) + (state.open is not None),
        "incarnation": state.incarnation,
        "learner": state.learner,
        "waits_for": opened.waits_for,
        "damaged_segments": {first: d.why for first, d in sorted(state.damaged.items())},
        "pending_recoveries": sorted(state.decisions),
        "failed_because": opened.owner.failed_because,
        "disk_free_bytes": opened.free_bytes,
        "disk_total_bytes": opened.total_bytes,
        "disk_warning": opened.disk_warning,
        "folder": str(opened.root),
    }
