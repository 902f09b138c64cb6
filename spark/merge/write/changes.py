"""What the replay changed, as files that tasks read: new messages, children that came or left."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from spark.image.varints import Numbers

_BLOB = ".bytes"


class Messages:
    """Bytes by id, in a sorted file; mapped, so that only what is asked for takes memory."""

    __slots__ = ("_blob", "_ends", "ids")

    def __init__(self, path: str) -> None:
        table = np.load(path)
        self.ids: Numbers = table[0]
        self._ends: Numbers = table[1]
        size = int(self._ends[-1]) if self._ends.size else 0
        blob = Path(path + _BLOB)
        self._blob = np.memmap(blob, np.uint8, "r").data if size else memoryview(b"")

    def at(self, place: int) -> bytes:
        """Return the bytes of the id at a place of ``ids``."""
        begin = int(self._ends[place - 1]) if place else 0
        return bytes(self._blob[begin : int(self._ends[place])])


def save_messages(path: Path, messages: Iterable[tuple[int, bytes]]) -> str:
    """Write bytes by id; the ids ascend."""
    ids: list[int] = []
    ends: list[int] = []
    end = 0
    with Path(f"{path}{_BLOB}").open("wb") as blob:
        for number, raw in messages:
            blob.write(raw)
            end += len(raw)
            ids.append(number)
            ends.append(end)
    with path.open("wb") as file:
        np.save(file, np.array([ids, ends], np.int64))
    return str(path)


class Moves:
    """Which children left, and which came to, the directories of the image, by directory."""

    __slots__ = ("_added", "_names", "_removed", "parents")

    def __init__(self, path: str) -> None:
        with np.load(path) as found:
            self.parents: Numbers = found["parents"]
            self._removed = (found["removed_ends"], found["removed"])
            self._added = (found["added_ends"], found["added"])
            self._names = (found["name_ends"], found["names"].tobytes())

    def removed(self, place: int) -> Numbers:
        """Return the ids that left the directory at a place of ``parents``."""
        ends, ids = self._removed
        found: Numbers = ids[_begin(ends, place) : ends[place]]
        return found

    def added(self, place: int) -> Iterator[tuple[bytes, int]]:
        """Yield the names and ids that came to the directory at a place of ``parents``."""
        ends, ids = self._added
        name_ends, names = self._names
        for row in range(_begin(ends, place), int(ends[place])):
            yield names[_begin(name_ends, row) : int(name_ends[row])], int(ids[row])


def _begin(ends: Numbers, place: int) -> int:
    return int(ends[place - 1]) if place else 0


def save_moves(
    path: Path,
    removed: Mapping[int, Sequence[int]],
    added: Mapping[int, Sequence[tuple[bytes, int]]],
) -> str:
    """Write who left and who came."""
    parents = sorted(removed.keys() | added.keys())
    left = [removed.get(parent, ()) for parent in parents]
    came = [added.get(parent, ()) for parent in parents]
    names = [name for found in came for name, _ in found]
    with path.open("wb") as file:
        np.savez(
            file,
            parents=np.array(parents, np.int64),
            removed_ends=_ends(map(len, left)),
            removed=np.array([number for found in left for number in found], np.int64),
            added_ends=_ends(map(len, came)),
            added=np.array([number for found in came for _, number in found], np.int64),
            name_ends=_ends(map(len, names)),
            names=np.frombuffer(b"".join(names), np.uint8),
        )
    return str(path)


def _ends(sizes: Iterable[int]) -> Numbers:
    return np.cumsum(np.array(list(sizes), np.int64), dtype=np.int64)
