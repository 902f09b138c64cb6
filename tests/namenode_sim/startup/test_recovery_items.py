"""Which copy of a local segment counts, and what is reported of what it lacks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from journal.model import TxId
from namenode_sim.edits.ops import Op, StartLogSegment
from namenode_sim.startup.recovery_items import Copy, Edit, best_copies, local_items
from namenode_sim.storage.local_copies import MARK
from tests.namenode_sim.startup.startup_world import mkdir
from tests.worlds.files import PREALLOCATED, frames, write_segment

HEADER_BYTES = 8


@dataclass(frozen=True)
class File:
    """A segment file: its edits, and those of them that have a damaged byte."""

    first: int
    count: int
    closed: bool = True
    bad: tuple[int, ...] = ()
    named_last: int | None = None
    behind: bytes = b""

    def write(self, folder: Path) -> None:
        ops: list[Op] = [StartLogSegment(), *(mkdir(f"/{i}") for i in range(1, self.count))]
        path = write_segment(folder, self.first, ops, closed=self.closed)
        data = bytearray(path.read_bytes())
        if self.behind:
            data = data.removesuffix(PREALLOCATED) + self.behind
        for txid in self.bad:
            data[_end_of(ops, self.first, txid) - 1] ^= 1
        path.write_bytes(data)
        if self.named_last is not None:
            path.rename(folder / f"edits_{self.first:019d}-{self.named_last:019d}")


def _end_of(ops: list[Op], first: int, txid: int) -> int:
    return HEADER_BYTES + len(frames(first, ops[: txid - first + 1]))


def whole(first: int, last: int) -> File:
    return File(first, last - first + 1)


def begun(first: int, last: int, *bad: int, behind: bytes = b"") -> File:
    return File(first, last - first + 1, closed=False, bad=bad, behind=behind)


def hurt(first: int, last: int, *bad: int) -> File:
    return File(first, last - first + 1, bad=bad)


Made = Callable[..., list[Copy]]


@pytest.fixture
def copies(tmp_path: Path) -> Made:
    def make(
        *directories: list[File], image: int = 0, copied_from: int | None = None
    ) -> list[Copy]:
        paths = [tmp_path / name for name, _ in zip("abcd", directories, strict=False)]
        for path, files in zip(paths, directories, strict=True):
            (path / "current").mkdir(parents=True)
            for file in files:
                file.write(path / "current")
            if copied_from is not None:
                (path / "current" / MARK).write_text(f"{copied_from}\n")
        return best_copies(paths, TxId(image))

    return make


def told(found: list[Copy]) -> Iterator[int | str]:
    """Yield edits by number, and troubles by what they may have cost."""
    for item in local_items(found):
        yield int(item.txid) if isinstance(item, Edit) else f"up to {item.last}"


FOUND: dict[str, tuple[list[list[File]], int, list[int | str]]] = {
    "one whole segment": ([[whole(1, 3)]], 0, [1, 2, 3]),
    "an open one": ([[begun(1, 3)]], 0, [1, 2, 3]),
    "an open one's torn tail was acknowledged to nobody": ([[begun(1, 3, 3)]], 0, [1, 2]),
    "a hole in an open one": ([[begun(1, 4, 2)]], 0, [1, "up to 2", 3, 4]),
    "a hole in a closed one": ([[hurt(1, 4, 2)]], 0, [1, "up to 2", 3, 4]),
    "a damaged end of a closed one": ([[hurt(1, 4, 3, 4)]], 0, [1, 2, "up to 4"]),
    "a hole and a damaged end": ([[hurt(1, 5, 2, 5)]], 0, [1, "up to 2", 3, 4, "up to 5"]),
    "a name that promises more": ([[File(1, 2, named_last=4)]], 0, [1, 2, "up to 4"]),
    "a name that promises less": ([[File(1, 4, named_last=2), whole(3, 4)]], 0, [1, 2, 3, 4]),
    "rubbish behind what the name promises": (
        [[File(1, 2, behind=b"\x09rubbish")]], 0, [1, 2],
    ),
    "a sound copy before a damaged one": ([[hurt(1, 4, 2)], [whole(1, 4)]], 0, [1, 2, 3, 4]),
    "a sound copy before a damaged one, read first": (
        [[whole(1, 4)], [hurt(1, 4, 2)]], 0, [1, 2, 3, 4],
    ),
    "the less damaged of two": (
        [[hurt(1, 5, 2, 4)], [hurt(1, 5, 3)]], 0, [1, 2, "up to 3", 4, 5],
    ),
    "a sound copy before a damaged one with as many edits": (
        [[File(1, 5, bad=(2,), named_last=4)], [whole(1, 4)]], 0, [1, 2, 3, 4],
    ),
    "the longer of two open ones": ([[begun(1, 2)], [begun(1, 4)]], 0, [1, 2, 3, 4]),
    "a longer open one with a hole before a shorter one": (
        [[begun(1, 5, 3)], [begun(1, 2)]], 0, [1, 2, "up to 3", 4, 5],
    ),
    "a damaged closed one before an open one that ends early": (
        [[hurt(1, 5, 3)], [begun(1, 2)]], 0, [1, 2, "up to 3", 4, 5],
    ),
    "a damaged closed one before one that was closed early": (
        [[hurt(1, 5, 3)], [whole(1, 2)]], 0, [1, 2, "up to 3", 4, 5],
    ),
    "an open one that ends early, and a closed one of which less is left": (
        [[hurt(1, 5, 1, 2, 3, 4, 5)], [begun(1, 2)]], 0, [1, 2, "up to 5"],
    ),
    "the longer of two closed ones": ([[whole(1, 2)], [whole(1, 4)]], 0, [1, 2, 3, 4]),
    "where a segment was closed it ends, whatever an open copy has": (
        [[whole(1, 2), whole(3, 4)], [begun(1, 5)]], 0, [1, 2, 3, 4],
    ),
    "nothing that the image has": ([[whole(1, 2), whole(3, 4), begun(5, 6)]], 6, []),
    "what is partly in the image": ([[whole(1, 2), whole(3, 4)]], 3, [3, 4]),
    "an open one that is partly in the image": ([[begun(1, 4)]], 3, [1, 2, 3, 4]),
    "segments in order": ([[begun(5, 6), whole(1, 2)], [whole(3, 4)]], 0, [1, 2, 3, 4, 5, 6]),
}  # fmt: skip


@pytest.mark.parametrize(("directories", "image", "expected"), FOUND.values(), ids=FOUND)
def test_what_is_found(
    copies: Made, directories: list[list[File]], image: int, expected: list[int | str]
) -> None:
    assert list(told(copies(*directories, image=image))) == expected


def test_of_two_copies_that_have_all_the_closed_one_counts(copies: Made) -> None:
    (copy,) = copies([begun(1, 5)], [whole(1, 2)])
    assert copy.path.name == f"edits_{1:019d}-{2:019d}"


LASTS = {
    "what is promised and lost": ([[hurt(1, 5, 4, 5)]], 5),
    "what only the name of a worse copy promises": (
        [[hurt(1, 5, 1, 2, 3, 4, 5)], [begun(1, 2)]], 5,
    ),
    "what can be read": ([[begun(1, 4, 2)]], 4),
    "nothing": ([[begun(3, 3, 3)]], None),
}  # fmt: skip


@pytest.mark.parametrize(("directories", "last"), LASTS.values(), ids=LASTS)
def test_a_number_counts_as_used_up_to(
    copies: Made, directories: list[list[File]], last: int | None
) -> None:
    assert [copy.last for copy in copies(*directories, image=2)] == ([] if last is None else [last])


DAMAGED = {
    "whole": (whole(1, 3), False),
    "open": (begun(1, 3), False),
    "open, with a torn tail": (begun(1, 3, 3), False),
    "open, with a hole": (begun(1, 3, 2), True),
    "closed, with a hole": (hurt(1, 3, 2), True),
    "closed, with a damaged end": (hurt(1, 3, 3), True),
    "shorter than its name": (File(1, 2, named_last=4), True),
    "with rubbish behind what its name promises": (File(1, 2, behind=b"\x09rubbish"), False),
}


@pytest.mark.parametrize(("file", "damaged"), DAMAGED.values(), ids=DAMAGED)
def test_a_file_is_damaged_where_an_edit_of_it_is_lost(
    copies: Made, file: File, damaged: bool
) -> None:
    (copy,) = copies([file])
    assert copy.damaged is damaged


@pytest.mark.parametrize("name", ["edits_inprogress_3", "edits_3-4"])
@pytest.mark.parametrize("content", [b"", b"\xff" * 40], ids=["empty", "without a header"])
def test_a_file_of_which_nothing_can_be_read_is_told(
    tmp_path: Path, name: str, content: bytes
) -> None:
    """Report it, but for an empty one in progress, which was only just made."""
    (tmp_path / "current").mkdir()
    (tmp_path / "current" / name).write_bytes(content)
    if "inprogress" not in name:
        assert best_copies([tmp_path], TxId(4)) == []
    found = best_copies([tmp_path], TxId(2))
    if not content and "inprogress" in name:
        assert found == []
        return
    (copy,) = found
    assert copy.damaged
    last = None if "inprogress" in name else 4
    assert list(told(found)) == [f"up to {last}"]
    assert copy.last == (last or 2)


def test_copies_of_what_the_quorum_has_do_not_count(copies: Made) -> None:
    """Ask the quorum, which alone knows where they truly end."""
    assert list(told(copies([whole(1, 2), whole(3, 4), begun(5, 6)], copied_from=3))) == [1, 2]


@pytest.mark.parametrize("suffix", ["damaged", "corrupt", "stale", "empty"])
def test_what_was_put_aside_does_not_count(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "current").mkdir()
    whole(1, 2).write(tmp_path / "current")
    (path,) = (tmp_path / "current").iterdir()
    path.rename(f"{path}.{suffix}")
    assert best_copies([tmp_path, tmp_path / "none"], TxId(0)) == []
