"""Which directories a report picks out of a tree, and that damage anywhere is found or harmless."""

import random
from pathlib import Path

import numpy as np
import pytest

from spark.reports.batch import Directories
from spark.reports.export import open_export
from spark.reports.growth import tree_changes
from spark.reports.model import ExportDamaged, NotAnExport, Section, Settings
from spark.reports.report import make_report
from spark.reports.sums import Sums
from spark.reports.trees import rows_of, spread, subtree_sums, telling
from tests.spark.reports.exports import AT_MS, random_rows, write_export


def chain(*parents: int) -> Directories:
    """Directories 10, 11, ... with the rows of their parents; -1 for the root."""
    depth = [0]
    for parent in parents[1:]:
        depth.append(depth[parent] + 1)
    zeros = np.zeros(len(parents), np.int64)
    ids = np.arange(10, 10 + len(parents))
    return Directories(
        ids, np.array(parents), np.array(depth), zeros, zeros, zeros, zeros, zeros, zeros
    )


def test_a_tree_within_a_tree_is_not_listed_again_even_below_one_that_is_not() -> None:
    # root > cold > warm > cold: the innermost is part of the outermost.
    part, whole = np.array([95, 95, 5, 5]), np.array([1000, 100, 10, 5])
    assert spread(chain(-1, 0, 1, 2), part, whole, 90).tolist() == [False, True, False, False]


def test_the_root_may_be_the_topmost() -> None:
    part = np.array([10, 10])
    assert spread(chain(-1, 0), part, part, 90).tolist() == [True, False]


@pytest.mark.parametrize(("child", "shown"), [(90, True), (91, False), (-91, False)])
def test_nine_tenths_in_one_child(child: int, shown: bool) -> None:
    amounts = np.array([500, 100, child])
    assert telling(np.array([-1, 0, 1]), amounts).tolist() == [False, shown, True]


def test_sums_go_up_by_depth_and_not_by_id() -> None:
    # 10 is below 12, which is below 11: ids say nothing about who is above whom.
    zeros = np.zeros(3, np.int64)
    tree = Directories(
        np.array([10, 11, 12]), np.array([2, -1, 1]), np.array([2, 0, 1]),
        zeros, zeros, zeros, zeros, zeros, zeros,
    )  # fmt: skip
    assert subtree_sums(tree, np.array([1, 10, 100])).tolist() == [1, 111, 101]


def test_a_tree_that_moved_is_below_its_newer_parent() -> None:
    changes = tree_changes(chain(-1, 0, 0, 1), chain(-1, 0, 0, 2))
    assert changes.parent.tolist() == [-1, 0, 0, 2]
    changes = tree_changes(chain(-1, 0, 0, 1), chain(-1, 0))
    assert changes.parent.tolist() == [-1, 0, 0, 1]


def test_ids_that_are_no_directory_have_no_row() -> None:
    assert rows_of(chain(-1, 0), np.array([9, 10, 11, 12])).tolist() == [-1, 0, 1, -1]
    assert rows_of(chain(), np.array([9])).tolist() == [-1]


def test_sums_are_exact_beyond_what_floats_hold() -> None:
    sums = Sums(("bytes",))
    big = (1 << 61) + 1
    for _ in range(3):
        sums.add(np.array([7, 5]), {"bytes": np.array([big, 1])})
    keys, totals = sums.totals()
    assert keys.tolist() == [5, 7]
    assert totals["bytes"].tolist() == [3, 3 * big]


def test_damage_anywhere_is_told_as_such(tmp_path: Path) -> None:
    """Raise no other error than ours, whatever bytes are overwritten."""
    dice = random.Random(3)
    folder = write_export(tmp_path / "export", random_rows(dice, 60))
    told = []
    for _ in range(60):
        path = dice.choice(sorted(folder.rglob("*.parquet")))
        good = path.read_bytes()
        bad = bytearray(good)
        for _ in range(dice.choice((1, 3, 20))):
            bad[dice.randrange(len(bad))] = dice.randrange(256)
        path.write_bytes(bad)
        try:
            make_report(open_export(folder), Settings(as_of_ms=AT_MS), set(Section))
        except (ExportDamaged, NotAnExport) as error:
            told.append(str(error))
        path.write_bytes(good)
    assert len(told) > 40
    assert all(str(folder) in line for line in told)
