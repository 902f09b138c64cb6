"""Name directories, and the power cut after each operation on their files.

The same shim and replay as for a JournalNode; what a cut leaves must open as it was before the act
that was cut, or as it is after it.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from hadoop.errors import StorageError
from namenode_sim.storage.storage import open_name_dirs
from tests.journal.storage.power_replay import Cut, Replay
from tests.journal.storage.test_power_loss import Recorded, _quiet, built_shim, lived, pytestmark
from tests.namenode_sim.startup.name_dirs_life import LIFE, directories_of

__all__ = ["_quiet", "pytestmark"]

FILL = [act for act, _ in LIFE].index("fill")
MEMORY = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
PLANTS = {
    "folders are not synced": "durable.sync_folder = lambda folder: None",
    "nothing is": "durable.os.fsync = lambda fd: None",
}


def record(folder: Path, plant: str = "pass") -> Recorded:
    shim, log, root, marks = built_shim(folder), folder / "log", folder / "nn", folder / "marks"
    root.mkdir()
    log.touch()
    program = (
        f"from hadoop import durable\n{plant}\nfrom pathlib import Path\n"
        "from tests.namenode_sim.startup.name_dirs_life import main\n"
        f"main(Path({str(root)!r}), Path({str(log)!r}), Path({str(marks)!r}))"
    )
    return lived(program, shim, root, log, marks)


def failures(
    recorded: Recorded, cuts: tuple[Cut, ...], judge: Callable[[Path, int], None]
) -> Iterator[str]:
    """Yield the cuts after which ``judge`` raises for what is left behind a number of acts."""
    replay = Replay(recorded.root)
    for point, operation in enumerate(recorded.operations, start=1):
        replay.apply(operation)
        done = sum(at <= point for at in recorded.answered_at)
        for cut in cuts:
            name = f"{point} of {len(recorded.operations)} ({operation[0]}), act {done}, {cut}"
            with TemporaryDirectory(dir=MEMORY) as folder:
                replay.write_to(Path(folder), cut, Random(name))
                try:
                    judge(Path(folder), done)
                except Exception as failure:  # noqa: BLE001 - whatever breaks is a finding
                    yield f"{name}: {failure!r}"


def judge(root: Path, done: int) -> None:
    """Open what is left after ``done`` acts.

    Raises:
        AssertionError, StorageError, ImageError: something that was done is not there.
    """
    directories = directories_of(root)[: 2 if done >= FILL else 1]
    for directory in directories:
        directory.mkdir(parents=True, exist_ok=True)
    under_way = LIFE[min(done, len(LIFE) - 1)]
    try:
        storage = open_name_dirs(directories)
    except StorageError:
        # Half of a new file system is refused; it is for the operator to format again.
        if done < len(LIFE) and under_way[0].startswith("format"):
            return
        raise
    try:
        assert storage.load().last_applied in (LIFE[max(done - 1, 0)][1], under_way[1])
    finally:
        storage.close()


def test_power_loss_after_any_operation(tmp_path: Path) -> None:
    recorded = record(tmp_path)
    assert len(recorded.operations) > 200, "the shim has recorded next to nothing"
    found = list(failures(recorded, tuple(Cut), judge))
    assert not found, f"{len(found)} cuts: {found[:5]}"


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS.keys())
def test_a_forgotten_sync_is_found(tmp_path: Path, plant: str) -> None:
    cuts = (Cut.NOTHING, Cut.NAMES)
    assert next(failures(record(tmp_path, plant), cuts, judge), None) is not None
