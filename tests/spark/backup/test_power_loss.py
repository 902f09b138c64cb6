"""What is put in place as a whole, and the power cut after each operation on its files.

It is there as soon as it was said to be, and never in part: by the shim and the replay that judge
JournalNodes and name directories.
"""

from pathlib import Path

import pytest

from tests.journal.storage.power_replay import Cut
from tests.journal.storage.test_power_loss import Recorded, _quiet, built_shim, lived, pytestmark
from tests.namenode_sim.startup.test_name_dirs_power_loss import PLANTS, failures
from tests.spark.backup.published_life import LIVES, whole

__all__ = ["_quiet", "pytestmark"]

COPIES = {"a backup": 1, "a merge": 1, "a bootstrap": 2, "a restore": 2}


def record(folder: Path, which: str, plant: str = "pass") -> Recorded:
    shim, log, root, marks = built_shim(folder), folder / "log", folder / "here", folder / "marks"
    root.mkdir()
    log.touch()
    places = ", ".join(f"Path({str(one)!r})" for one in (root, log, marks))
    program = (
        f"from hadoop import durable\n{plant}\nfrom pathlib import Path\n"
        f"from tests.spark.backup.published_life import main\nmain({which!r}, {places})"
    )
    return lived(program, shim, root, log, marks)


def found_in(recorded: Recorded, which: str, cuts: tuple[Cut, ...]) -> list[str]:
    def judge(root: Path, done: int) -> None:
        assert whole(which, root) >= done * COPIES[which]

    return list(failures(recorded, cuts, judge))


@pytest.mark.parametrize("which", LIVES)
def test_power_loss_after_any_operation(tmp_path: Path, which: str) -> None:
    recorded = record(tmp_path, which)
    assert len(recorded.operations) > 10, "the shim has recorded next to nothing"
    found = found_in(recorded, which, tuple(Cut))
    assert not found, f"{len(found)} cuts: {found[:5]}"


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS.keys())
@pytest.mark.parametrize("which", LIVES)
def test_a_forgotten_sync_is_found(tmp_path: Path, which: str, plant: str) -> None:
    assert found_in(record(tmp_path, which, plant), which, (Cut.NOTHING, Cut.NAMES))
