"""Errors while an image is written: reported at once, and no thread is left behind."""

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from namenode_sim.image.codecs import ZLIB_CODEC
from namenode_sim.image.errors import ImageError
from spark.engine.model import TaskFailed
from spark.engine.outcome import InlineEngine
from spark.merge.write.stages import apply_delta
from tests.spark.merge.image_world import Opened, grown, merged, nothing_changes, opened, summary
from tests.worlds.files import save

T = TypeVar("T")
R = TypeVar("R")


class BreakingEngine:
    """Runs all tasks in their order but for one of a stage, which fails for good."""

    name, parallelism = "breaking", 1

    def __init__(self, stage: str, number: int) -> None:
        self._breaks = (stage, number)

    def run(
        self, stage: str, function: Callable[[T], R], tasks: Sequence[T]
    ) -> Iterator[tuple[int, R]]:
        """See `spark.engine.model.Engine`."""
        for number, result in InlineEngine().run(stage, function, tasks):
            if (stage, number) == self._breaks:
                raise TaskFailed(stage, number, "OSError", "the disk is on fire")
            yield number, result


@pytest.fixture
def found(tmp_path: Path) -> Opened:
    return opened(save(grown(8, 200), tmp_path / "old", codec=ZLIB_CODEC), tmp_path / "work")


def assembling() -> list[threading.Thread]:
    """Return the threads that put images together."""
    return [thread for thread in threading.enumerate() if thread.name == "assemble"]


@pytest.mark.parametrize(
    ("stage", "number"), [("write inodes", 0), ("write inodes", 3), ("write directories", 0)]
)
def test_a_task_that_fails_ends_the_writing(
    tmp_path: Path, found: Opened, stage: str, number: int
) -> None:
    with pytest.raises(TaskFailed, match="the disk is on fire"):
        merged(found, nothing_changes(found), tmp_path / "new", BreakingEngine(stage, number))
    assert not assembling()
    merged(found, nothing_changes(found), tmp_path / "new")


def test_a_result_that_cannot_be_written_is_told(tmp_path: Path, found: Opened) -> None:
    nowhere = tmp_path / "no" / "such" / "folder" / "image"
    with pytest.raises(FileNotFoundError, match="no/such/folder"):
        apply_delta(InlineEngine(), found.index, nothing_changes(found), found.work, nowhere)
    assert not assembling()


def test_an_image_that_shrinks_meanwhile_is_told(tmp_path: Path) -> None:
    path = save(grown(8, 200), tmp_path / "old")
    found = opened(path, tmp_path / "work")
    section = summary(path).find("INODE_DIR")
    assert section is not None
    path.write_bytes(path.read_bytes()[: section.offset + 10])
    with pytest.raises(ImageError, match=rf"{path}.* the file ends inside it"):
        merged(found, nothing_changes(found), tmp_path / "new", InlineEngine())


def test_what_is_no_image_is_told(tmp_path: Path) -> None:
    path = tmp_path / "fsimage_0000000000000000001"
    path.write_bytes(b"not an image at all")
    with pytest.raises(ImageError, match=rf"{path} cannot be opened: it does not begin with"):
        opened(path, tmp_path / "work")
