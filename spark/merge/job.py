"""The whole merge on an engine: from an image and its edits to a published newer image.

Nothing is visible in the output directory before the last rename.  What only a process that holds
the whole namespace does exactly is given to `namenode_sim.checkpoint.merge`, and reported.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import structlog

from ha.record import dataclass
from journal.model import TxId
from namenode_sim.checkpoint import merge as whole
from namenode_sim.checkpoint.merge import Merged
from namenode_sim.checkpoint.publication import publish, staged
from namenode_sim.edits.ops import Op
from namenode_sim.image.errors import ImageError
from namenode_sim.image.files import check_digest, image_name, write_digest
from namenode_sim.namespace.errors import ApplyError
from spark.engine.model import Engine, TaskFailed
from spark.image.opened import open_image
from spark.merge.base import Base, read_base
from spark.merge.delta import delta_of
from spark.merge.edits import Edits
from spark.merge.errors import EditsDoNotBelong, MergeFailed, Miss, NeedsWholeNamespace
from spark.merge.model import Delta, Looked, MergePlan
from spark.merge.plan.lookup import ImageIndex, look_up
from spark.merge.plan.planner import plan_edits
from spark.merge.plan.rounds import plan_until_right
from spark.merge.replay import replay
from spark.merge.sparse import sparse_namespace
from spark.merge.stages import CountingEngine, Stages, Tell, ignore_progress
from spark.merge.trie import NEED, BaseTrie
from spark.merge.workdir import work_directory
from spark.merge.write.stages import apply_delta

log = structlog.get_logger()

MOST_MISSES: Final = 3
"""How often the replay may ask for what no plan foresaw, before one process does it all."""

WHOLE: Final = "single process"
"""The stage of the merges that cannot be divided."""


@dataclass(frozen=True, slots=True)
class MergedOn:
    """What a merge on an engine has published, and how.

    Attributes:
        merged: the image and its figures.
        single_process_because: why one process did it all; None if it was divided.
        seconds: by stage, in their order; overlapping parts count once.
    """

    merged: Merged
    single_process_because: str | None
    seconds: Mapping[str, float]


def merge_on(
    engine: Engine,
    image: Path,
    edits: Path,
    out: Path,
    work: Path,
    tell: Tell = ignore_progress,
    *,
    digest_checked: bool = False,
    range_bytes: int | None = None,
) -> MergedOn:
    """Apply the finalized edits behind ``image`` to it, and publish the result in ``out``.

    The callback is called with the progress of each stage.

    Args:
        engine: what runs the tasks.
        image: ``fsimage_N`` with its digest next to it, where the executors see it, too.
        edits: a folder with segments, or a directory that has them in ``current``.
        out: where ``fsimage_M`` and its digest go; created if it does not exist.
        work: where this run makes its work directory; the executors see it under the same path.
        digest_checked: whether the caller has compared the image with its digest already.
        range_bytes: of the image, for each task; by default as many as suit the engine.

    Raises:
        MergeRefused: if another image of the same transaction is in ``out``.
        EditsError: if an edit is damaged, missing or does not apply; says where.
        ImageError: if the image is not sound; says where.
        MergeFailed: if the edits are another image's, or a task failed; says where.
        InUse: if another merge works in ``out``.
        OSError: if a file cannot be read or written.
    """
    stages = Stages(tell)
    try:
        with work_directory(work) as room, _translated():
            job = _Job(CountingEngine(engine, stages), image, edits, room, stages, range_bytes)
            return MergedOn(job.run(out, check=not digest_checked), None, stages.seconds)
    except NeedsWholeNamespace as reason:
        because = str(reason)
    log.warning("merge.single_process", because=because)
    with stages.stage(WHOLE):
        result = whole.merge(image, edits, out, progress=_adapt_progress(stages))
    return MergedOn(result, because, stages.seconds)


class _Job:
    """One divided merge."""

    def __init__(
        self,
        engine: Engine,
        image: Path,
        edits: Path,
        room: Path,
        stages: Stages,
        range_bytes: int | None,
    ) -> None:
        self._engine = engine
        self._image = image
        self._edits_folder = edits
        self._room = room
        self._stages = stages
        self._range_bytes = range_bytes

    def run(self, out: Path, *, check: bool) -> Merged:
        with ThreadPoolExecutor(1, "digest") as beside:
            # At the same time as the first stages: hashing needs no interpreter, and Spark is still
            # starting.
            digest = beside.submit(check_digest, self._image) if check else None
            base, edits = self._open()
            index, delta, last = self._difference(base, edits, digest)
            if digest is not None:
                digest.result()
        with staged(out) as stage:
            made = stage / image_name(last)
            with self._stages.stage("write"):
                tell = self._stages.progress
                written = apply_delta(self._engine, index, delta, self._room, made, tell)
            with self._stages.stage("publish"):
                write_digest(made, written.md5)
                already_there = publish(made, out)
        return Merged(
            image=out / made.name,
            from_txid=base.facts.last_applied,
            to_txid=last,
            segments=len(edits.segments),
            inodes=written.inodes,
            digest=written.md5,
            already_there=already_there,
        )

    def _open(self) -> tuple[Base, Edits]:
        """Open the image and the edits in the driver."""
        with self._stages.stage("open"):
            with _of_image(self._image), self._image.open("rb") as file:
                base = read_base(file)
            edits = Edits(self._edits_folder, base.facts.last_applied)
            # Versions count downwards.  Older edits leave an image in its layout: our NameNodes
            # format at the newest layout, and log at one that every Hadoop in use reads.
            newest = min(edits.layouts(), default=base.facts.layout)
            if newest < base.facts.layout:
                raise NeedsWholeNamespace(
                    f"the edits have layout version {newest} and the image has "
                    f"{base.facts.layout}: the whole image is written anew"
                )
        return base, edits

    def _difference(
        self, base: Base, edits: Edits, digest: "Future[None] | None"
    ) -> tuple[ImageIndex, Delta, TxId]:
        """Decide all that precedes the writing: from opening the image to the difference."""
        with self._stages.stage("open"):
            opened = open_image(self._engine, self._image, self._room, size=self._range_bytes)

        indexes: list[ImageIndex] = []  # the last look-up's: it is what the writing goes by

        def read() -> Iterator[tuple[TxId, Op]]:
            return self._stages.counted(edits.all(), "plan", edits.count, "edits")

        def asked(trie: BaseTrie) -> Looked:
            if digest is not None and digest.done():
                digest.result()  # before hours of work on a damaged image
            with self._stages.stage("look up"):
                looked, found = look_up(self._engine, opened, trie, self._room)
            indexes[:] = [found]
            return looked

        def planned(*arguments: Any, **more: Any) -> MergePlan:  # noqa: ANN401 - those of plan_edits
            with self._stages.stage("plan"):
                return plan_edits(*arguments, **more)

        plan, looked = plan_until_right(base.facts, read, asked, planner=planned)
        for _ in range(MOST_MISSES):
            try:
                return indexes[0], self._replay(base, edits, plan, looked), plan.last
            except Miss as miss:
                log.warning("merge.missed", directory=miss.directory, name=miss.name)
                _ask_for(miss, plan, looked)
                looked = asked(plan.trie)
        return indexes[0], self._replay(base, edits, plan, looked), plan.last

    def _replay(self, base: Base, edits: Edits, plan: MergePlan, looked: Looked) -> Delta:
        """Replay the edits on what was looked up, and return the difference."""
        with self._stages.stage("replay"):
            sparse = sparse_namespace(base, plan, looked)
            found = self._stages.counted(edits.all(), "replay", edits.count, "edits")
            try:
                replay(sparse, found)
            except ApplyError as problem:
                txid = TxId(sparse.namespace.last_applied + 1)
                raise edits.error(txid, f"it cannot be applied: {problem}") from problem
        with self._stages.stage("delta"):
            return delta_of(sparse)


def _ask_for(miss: Miss, plan: MergePlan, looked: Looked) -> None:
    """Put what was missed into the trie; raises the miss again if its place is not known."""
    for node, inode_id in enumerate(looked.ids.tolist()):
        if inode_id == miss.directory:
            wanted = plan.trie.child(node, miss.name) if miss.name else node
            plan.trie.flags[wanted] |= NEED
            return
    raise miss


@contextmanager
def _of_image(image: Path) -> Iterator[None]:
    """Errors of the image name it."""
    try:
        yield
    except ImageError as problem:
        raise ImageError(f"{image}: {problem}") from problem


@contextmanager
def _translated() -> Iterator[None]:
    """Raise the errors of the parts as the merge's own."""
    try:
        yield
    except TaskFailed as failure:
        if failure.kind == NeedsWholeNamespace.__name__:
            raise NeedsWholeNamespace(failure.cause) from failure
        raise MergeFailed(str(failure)) from failure
    except EditsDoNotBelong as problem:
        raise MergeFailed(f"the edits do not belong to this image: {problem}") from problem


def _adapt_progress(stages: Stages) -> Callable[[whole.Progress], None]:
    return lambda at: stages.tell(WHOLE, at.done_bytes, at.total_bytes, "bytes of edits")
