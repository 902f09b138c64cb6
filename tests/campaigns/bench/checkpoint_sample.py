"""Whether a merged image of any size holds what its edits ask for, seen in a sample of inodes.

What is expected comes from the NameNode's own replay, on an image of those inodes alone that the
edits name, with the directories above them.  All others stay as they were generated, or go with a
directory above them.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from journal.model import NamespaceInfo
from namenode_sim.image.reader import load_image
from namenode_sim.image.writer import save_image
from namenode_sim.storage.local_edits import edits_of, finalized_in
from tests.campaigns.bench import checkpoint_same as same
from tests.worlds.large import edits as large_edits
from tests.worlds.large.images import LAYOUT, NAMESPACE_ID, write_big_image
from tests.worlds.large.shape import Places, Shape

SAMPLE: Final = 100_000
"""Half of it inodes that edits touched or made, half of all."""
SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Sampled:
    """How many inodes were compared, and what is wrong with some of them."""

    compared: int
    touched: int
    removed: int
    wrong: list[str]

    def __str__(self) -> str:
        found = "; ".join(self.wrong[:SHOWN]) or "all equal"
        return (
            f"{self.compared:,} compared, {self.touched:,} of them touched or made by edits and "
            f"{self.removed:,} removed: {found}"
        )


def compare(
    result: Path, edits: Path, shape: Shape, count: int, folder: Path, sample: int = SAMPLE
) -> Sampled:
    """Compare a sample of a merge's result with the replay of its ``count`` edits.

    ``folder`` takes three small images.
    """
    day = large_edits.Day(shape, 1)
    deque(large_edits.edits_of(day, count), maxlen=0)
    touched = day.touched.positions()
    before = write_big_image(_made(folder / "before"), shape, only=touched)
    after = _replayed(before, edits, _made(folder / "after"))
    random = np.random.default_rng(1)
    anywhere = np.unique(random.integers(0, shape.inodes, sample // 2))
    # Those with their parents: an image of them can be written.
    untouched = write_big_image(
        _made(folder / "any"), shape, only=_with_those_above(shape, anywhere)
    )
    texts = {name: same.spelled(path) for name, path in _named(before, after, untouched)}
    known = np.array(sorted(texts["before"].keys() | texts["after"].keys()), np.int64)
    drawn = random.choice(known, min(sample // 2, len(known)), replace=False)
    gone = {one for one in texts["before"] if one not in texts["after"]}
    expected: dict[int, str | None] = {int(one): texts["after"].get(int(one)) for one in drawn}
    for position, number in zip(anywhere.tolist(), shape.id_of(anywhere).tolist(), strict=True):
        if number in texts["before"]:
            expected[number] = texts["after"].get(number)
        else:
            ids = shape.id_of(np.array(_directories_above(shape, position)))
            expected[number] = None if gone & set(ids.tolist()) else texts["any"][number]
    found = same.spelled(result, set(expected))
    wrong = [
        f"inode {number}: {found.get(number)}, expected {text}"
        for number, text in expected.items()
        if found.get(number) != text
    ]
    wrong += _wrong_children(result, before, after, shape, day, expected)
    removed = sum(text is None for text in expected.values())
    return Sampled(len(expected), len(drawn), removed, wrong)


def _named(before: Path, after: Path, untouched: Path) -> Iterator[tuple[str, Path]]:
    yield from (("before", before), ("after", after), ("any", untouched))


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _replayed(image: Path, edits: Path, folder: Path) -> Path:
    namespace = load_image(image)
    for segment in finalized_in(edits):
        for located in edits_of(segment):
            namespace.apply(located.txid, located.op)
    save_image(namespace, folder / image.name, NamespaceInfo(LAYOUT, NAMESPACE_ID, "", 0))
    return folder / image.name


def _directories_above(shape: Shape, position: int) -> list[int]:
    """Return the positions of all directories above an inode, the root last."""
    owner, number = shape.owner(np.array([position]))
    directory = int(owner[0]) if number[0] >= 0 else int(shape.parent[owner[0]])
    found = []
    while directory >= 0:
        found.append(int(shape.place[directory]))
        directory = int(shape.parent[directory])
    return found


def _with_those_above(shape: Shape, positions: Places) -> Places:
    above = [one for position in positions.tolist() for one in _directories_above(shape, position)]
    return np.unique(np.concatenate((positions, np.array(above, np.int64))))


def _wrong_children(
    result: Path,
    before: Path,
    after: Path,
    shape: Shape,
    day: large_edits.Day,
    expected: Mapping[int, str | None],
) -> list[str]:
    """Compare what is in the directories of the sample that edits may have changed."""
    was, now = same.children(before), same.children(after)
    directories = {number for number in now.keys() | was.keys() if expected.get(number)}
    there, wrong = same.children(result, directories), list[str]()
    bases = {int(shape.id_of(shape.place[[one]])[0]): one for one in day.touched.directories()}
    for number in sorted(directories):
        base = set[int]()
        if number in bases:
            one = bases[number]
            files = shape.place[one] + 1 + np.arange(shape.files[one])
            base = {
                *shape.id_of(
                    np.concatenate((files, shape.place[shape.subdirectories(one)]))
                ).tolist()
            }
        wanted = base - was.get(number, set()) | now.get(number, set())
        if there.get(number, set()) != wanted:
            wrong.append(f"the children of inode {number}")
    return wrong
