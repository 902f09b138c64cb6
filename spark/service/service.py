"""The checkpoint service: carries out what its core decides, one thing at a time."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import assert_never

import structlog

from ha.daemon.in_thread import run_in_thread
from hadoop.directory_lock import DirectoryLock
from hadoop.errors import StorageError
from namenode_sim.edits.errors import EditsError
from namenode_sim.image.errors import ImageError
from namenode_sim.image.files import image_name
from spark.ends.sinks.model import UploadVerdict
from spark.ends.sinks.upload import Offer, offer_to_all
from spark.ends.sources.cluster import Cluster, view
from spark.ends.sources.from_cluster import adopt, stage_from_cluster
from spark.ends.sources.model import SourceError, Staged
from spark.service import core, metrics
from spark.service.core import step
from spark.service.log_roll import RollFailed, roll_log
from spark.service.merge_process import MergeFailed, Merger

log = structlog.get_logger()

EXPECTED = (SourceError, MergeFailed, EditsError, ImageError, StorageError, OSError)
"""What may go wrong outside of us; it is reported, waited out and tried again."""


class CheckpointService:
    """Watches one cluster until it is stopped.

    Args:
        cluster: where to ask.
        rules: when a checkpoint is due.
        work: an existing folder; one service at a time works in it.
        merger: makes an image of what was staged.
    """

    def __init__(self, cluster: Cluster, rules: core.Rules, work: Path, merger: Merger) -> None:
        self._cluster = cluster
        self._rules = rules
        self._work = work
        self._merger = merger
        self._state = core.State(last_at=time.monotonic())
        self._staged: Staged | None = None
        self._image: Path | None = None
        self._told: dict[str, object] = {"decision": None, "at": None, "facts": {}}
        self._problem = ""
        self._taken: dict[str, object] = {"txid": None, "at": None}

    async def run(self) -> None:
        """Work until cancelled; a merge under way is ended then.

        Raises:
            InUse: if another service works in the folder.
            OSError: if the folder cannot be written.
        """
        lock = DirectoryLock(self._work)
        try:
            event: core.Event = core.WokeUp()
            while True:
                event = await self._carry_out(self._decide(event))
        finally:
            lock.release()

    def status(self) -> Mapping[str, object]:
        """Return what the service sees, does and has done, for /status; the keys never change."""
        state = self._state
        return {
            "role": "checkpointer",
            "nameservice": self._cluster.nameservice,
            "phase": state.phase.value,
            "failures": state.failures,
            "problem": self._problem,
            "seen": None if state.seen is None else asdict(state.seen),
            "ready_txid": None if state.ready is None else state.ready.txid,
            "last_decision": self._told,
            "last_taken": self._taken,
            "work": str(self._work),
        }

    def trouble(self) -> str | None:
        """Return why the service does no good at present, or None."""
        return self._problem or None

    def _decide(self, event: core.Event) -> core.Action:
        """Take one turn of the core: its state, its log line, its metrics."""
        before = self._state
        decided = step(before, event, self._rules, time.monotonic())
        self._state = decided.state
        metrics.enter_phase(decided.state.phase)
        metrics.DECISIONS.labels(decided.said.removeprefix("checkpoint.")).inc()
        metrics.FAILURES.set(decided.state.failures)
        self._note(event, decided)
        _say(decided, failed=decided.state.failures > before.failures)
        return decided.action

    def _note(self, event: core.Event, decided: core.Step) -> None:
        self._told = {"decision": decided.said, "at": _clock(), "facts": dict(decided.facts)}
        failing = decided.state.failures > 0
        if isinstance(decided.action, core.Sleep):
            self._problem = str(decided.facts.get("because", "")) if failing else ""
        seen = decided.state.seen
        if isinstance(event, core.Looked) and seen is not None:
            metrics.IMAGE_TXID.set(seen.image_txid)
            metrics.PENDING.set(seen.last_txid - seen.image_txid)
        if isinstance(event, core.Offered):
            metrics.OFFERS.labels(event.verdict.name.lower()).inc()
            if event.verdict is UploadVerdict.TAKEN:
                metrics.LAST_TAKEN.set_to_current_time()
                self._taken = {"txid": decided.facts.get("txid"), "at": _clock()}

    async def _carry_out(self, action: core.Action) -> core.Event:
        try:
            match action:
                case core.Look():
                    return core.Looked(await self._look())
                case core.Roll():
                    return await self._roll()
                case core.Merge():
                    return core.Merged(await self._merge())
                case core.Upload(ready):
                    return await self._upload(ready)
                case core.Sleep(seconds):
                    await asyncio.sleep(seconds)
                    return core.WokeUp()
                case _:
                    assert_never(action)
        except EXPECTED as failure:
            if isinstance(action, core.Merge):
                metrics.MERGES.labels("failed").inc()
            return core.Failed(str(failure) or type(failure).__name__)

    async def _look(self) -> core.ClusterState:
        seen = await view(self._cluster)
        async with self._cluster.open_journal(seen.namespace) as reader:
            return core.ClusterState(
                active=seen.active,
                image_txid=seen.active_image_txid,
                epoch=await reader.writer_epoch(),
                finalized_txid=await reader.last_finalized(),
                last_txid=seen.last_txid,
            )

    async def _roll(self) -> core.Rolled:
        try:
            await roll_log(self._cluster)
        except RollFailed as failure:
            return core.Rolled(str(failure))
        return core.Rolled()

    async def _merge(self) -> core.Ready:
        began = time.monotonic()
        staged = await stage_from_cluster(self._cluster, self._work, _quietly)
        metrics.FETCHED.inc(staged.fetched_bytes)
        self._staged = staged
        self._image = staged.image
        if staged.last_txid > staged.base_txid:
            out = self._work / "merged"
            await run_in_thread(partial(_forget_images, out, image_name(staged.last_txid)))
            self._image = await self._merger.merge(staged, out)
        _require_txid(self._image, staged)
        metrics.MERGE_DURATION.observe(time.monotonic() - began)
        metrics.MERGES.labels("done").inc()
        return core.Ready(staged.last_txid, staged.epoch)

    async def _upload(self, ready: core.Ready) -> core.Offered:
        staged, image = self._staged, self._image
        assert staged is not None
        assert staged.namespace is not None
        assert image is not None
        offer = Offer(image, ready.txid, staged.namespace, ready.epoch)
        offered = await offer_to_all(self._cluster, offer)
        if offered.verdict is UploadVerdict.TAKEN and image != staged.image:
            await self._keep(image, staged)
        return core.Offered(offered.verdict, offered.why)

    async def _keep(self, image: Path, staged: Staged) -> None:
        """Keep it as the next merge's base; without it that one fetches the image."""
        try:
            await run_in_thread(partial(adopt, image, staged))
        except OSError as problem:
            log.warning("checkpoint.base_not_kept", path=str(image), because=str(problem))


def _say(decided: core.Step, *, failed: bool) -> None:
    """Log one line for each decision; where all is as before, at debug level only."""
    quiet = decided.said in ("checkpoint.looking", "checkpoint.not_due")
    say = log.warning if failed else log.debug if quiet else log.info
    say(decided.said, **decided.facts)


def _forget_images(folder: Path, kept: str) -> None:
    """Remove images that were not taken; one named ``kept`` may be just what is to be made."""
    for path in folder.glob("fsimage_*"):
        if path.name.removesuffix(".md5") != kept:
            path.unlink()


def _require_txid(image: Path, staged: Staged) -> None:
    """Check that the merge made what it was asked for."""
    if image.name != image_name(staged.last_txid):
        raise MergeFailed(f"it made {image.name}, and {image_name(staged.last_txid)} was wanted")


def _quietly(_: str) -> None:
    return


def _clock() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
