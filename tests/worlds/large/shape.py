"""A generated namespace as arithmetic: which directories there are, and what lies in them.

Only directories are held, in a few arrays; a file is a position.  A position's inode is known by
calculation alone, so that images of any size are written, and edits made for them, in little
memory.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from namenode_sim.namespace.inode import ROOT_ID
from tests.worlds.large import rows as large_rows
from tests.worlds.large.rows import padded

Places = NDArray[np.int64]

TOP_DIRECTORIES: Final = 24
"""Each with some 4 % of all inodes."""
SHARES: Final = (1, 5, 12, 17, 18, 15, 11, 8, 5, 3, 2, 1, 0.6, 0.4)
"""Of the directories at depth 3 to 16, in hundredths."""
LARGE_SHARE: Final = 0.02
"""Of all inodes, that one directory has."""
WINDOW: Final = 4096
"""Neighbours in a directory lie within this number of inodes, in no order."""
_STEP: Final = 2521  # odd, so that multiples of it visit a whole window
NAME_BYTES: Final = 40

_WORDS: Final = (
    "data", "logs", "tmp", "archive", "staging", "_temporary", "warehouse", "raw", "user", "etl",
    "reports", ".Trash",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Form:
    """How a name is made: text, then perhaps a number of the row and its hash, then an ending."""

    text: str
    numbered: bool = False
    hashed: bool = False
    ending: str = ""


_FORMS: Final = (
    _Form(""),
    _Form("_SUCCESS"),
    _Form("part-", numbered=True, hashed=True, ending=".orc"),
    _Form("part-", numbered=True, ending=".gz"),
    _Form("日報-", numbered=True, ending=".csv"),
    _Form("événement-", numbered=True, ending=".json"),
    _Form("zz-", numbered=True, ending=".txt"),
    _Form("dt=", numbered=True),
    _Form("données-", numbered=True),
    _Form("архив-", numbered=True),
    *(_Form(word) for word in _WORDS),
    *(_Form(f"{word}-", numbered=True) for word in _WORDS),
)
_SUCCESS, _HASHED, _PLAIN, _FOREIGN, _DAY, _DONNEES, _ARCHIV, _WORD = 1, 2, 3, 4, 7, 8, 9, 10
_TEXTS: Final = large_rows.Table([form.text.encode() for form in _FORMS])
_ENDINGS: Final = large_rows.Table([form.ending.encode() for form in _FORMS])
_NUMBERED: Final = np.array([form.numbered for form in _FORMS])
_WITH_HASH: Final = np.array([form.hashed for form in _FORMS])
_HEX: Final = np.frombuffer(b"0123456789abcdef", np.uint8)


class Shape:
    """The tree.  Directory 0 is the root; a directory's files follow it in position.

    Attributes:
        inodes: how many there are, the root included.
        parent: each directory's parent, -1 for the root.
        depth: how many directories are above each.
        files: how many files each has.
        place: each directory's position.
        rank: how many of its siblings that are directories come before each.
        below: how many inodes are below each.
        large: the directory with a great many files.
    """

    def __init__(self, inodes: int, seed: int = 1) -> None:
        self.inodes, self.seed = inodes, seed
        random = np.random.default_rng(seed)
        count = max(inodes // 10, 4)
        levels = _levels(count)
        shuffled = np.concatenate(([0], 1 + random.permutation(count - 1)))
        self.parent = np.full(count, -1, np.int64)
        self.depth = np.zeros(count, np.int64)
        begins = np.concatenate(([0], np.cumsum(levels)))
        for level in range(1, len(levels)):
            above, here, end = begins[level - 1 : level + 2]
            drawn = random.random(end - here) ** 1.3
            chosen = above + (drawn * (here - above)).astype(np.int64)
            self.parent[shuffled[here:end]] = shuffled[chosen]
            self.depth[shuffled[here:end]] = level
        weights = random.gamma(0.4, size=count)
        weights[0] = 0
        plain = inodes - count - int(inodes * LARGE_SHARE)
        # Rounded so that what one directory loses the next one gets.
        reached = np.floor(np.cumsum(weights) * (plain / weights.sum())).astype(np.int64)
        self.files: Places = np.diff(reached, prepend=0)
        self.large = int(shuffled[begins[3]])
        self.files[self.large] += inodes - count - int(self.files.sum())
        self.place = np.concatenate(([0], np.cumsum(1 + self.files)[:-1]))
        self.by_parent = np.argsort(self.parent, kind="stable")
        self.first_child = np.searchsorted(self.parent[self.by_parent], np.arange(count + 1))
        self.rank = np.empty(count, np.int64)
        self.rank[self.by_parent] = np.arange(count) - self.first_child[self.parent[self.by_parent]]
        self.rank[0] = 0
        self.below = self._count_below()

    def _count_below(self) -> Places:
        below: Places = self.files.copy()
        for level in range(int(self.depth.max()), 0, -1):
            here = np.flatnonzero(self.depth == level)
            np.add.at(below, self.parent[here], below[here] + 1)
        return below

    def subdirectories(self, directory: int) -> Places:
        begin, end = self.first_child[directory : directory + 2]
        found: Places = self.by_parent[begin:end]
        return found

    def id_of(self, position: Places) -> Places:
        """Return inode ids: neighbours are apart, and every ninth number is missing (deleted)."""
        window = position // WINDOW
        whole = (window > 0) & (window < self.inodes // WINDOW)
        turned = window * WINDOW + position % WINDOW * _STEP % WINDOW
        stored: Places = np.where(whole, turned, position)
        return ROOT_ID + stored + stored // 8

    def stored(self, begin: int, end: int) -> Places:
        """Return the positions in the order of their ids; bounds are multiples of the window."""
        place = np.arange(begin, min(end, self.inodes), dtype=np.int64)
        window = place // WINDOW
        whole = (window > 0) & (window < self.inodes // WINDOW)
        back = window * WINDOW + place % WINDOW * pow(_STEP, -1, WINDOW) % WINDOW
        found: Places = np.where(whole, back, place)
        return found

    @property
    def last_inode_id(self) -> int:
        """The highest id given out so far."""
        return ROOT_ID + self.inodes + self.inodes // 8 + 1

    def owner(self, position: Places) -> tuple[Places, Places]:
        """Return the directory in which each position is, and its number there; -1 for itself."""
        directory = np.searchsorted(self.place, position, side="right") - 1
        return directory, position - self.place[directory] - 1

    def names(self, directory: Places, number: Places) -> large_rows.Column:
        """Return the name of a file (number ≥ 0), or of the directory itself (number -1)."""
        is_file = number >= 0
        of = np.where(is_file, directory, self.parent[directory])
        hashed = large_rows.mixed(of, self.seed + 1)
        style = (hashed % np.uint64(10)).astype(np.int64)
        rank = np.where(is_file, number, self.rank[directory])
        form = np.where(is_file, _file_forms(style, number), _directory_forms(style, rank, hashed))
        form[directory + is_file == 0] = 0  # the root itself
        popular = form >= _WORD
        value = np.where(popular, rank // len(_WORDS), rank)
        return _spelled(form, value, hashed)


def _levels(count: int) -> list[int]:
    second = min(300, count // 8)
    levels = [1, min(TOP_DIRECTORIES, count // 4), second]
    rest = count - sum(levels)
    levels += [int(rest * share / sum(SHARES)) for share in SHARES]
    levels[6] += count - sum(levels)
    return [level for level in levels if level]


def _file_forms(style: Places, number: Places) -> Places:
    """Return the forms: one style for all files of a directory, but for what it has once."""
    forms = np.full(len(style), _HASHED)
    forms[(style < 4) & (number == 0)] = _SUCCESS
    forms[(style >= 4) & (style < 8)] = _PLAIN
    return np.where(style == 8, _FOREIGN + number % 3, forms)


def _directory_forms(style: Places, rank: Places, hashed: large_rows.Numbers) -> Places:
    word = (rank + (hashed >> np.uint64(8) & np.uint64(0xFF)).astype(np.int64)) % len(_WORDS)
    forms = _WORD + word + np.where(rank < len(_WORDS), 0, len(_WORDS))
    forms[(style >= 5) & (style < 8)] = _DAY
    forms[style == 8] = _DONNEES
    forms[style == 9] = _ARCHIV
    return forms


def _spelled(form: Places, value: Places, hashed: large_rows.Numbers) -> large_rows.Column:
    """Return names of these forms, on lines padded with zeros."""
    rows = len(form)
    digits = np.empty((rows, 6), np.uint8)
    for index in range(6):
        digits[:, 5 - index] = 48 + value // 10**index % 10
    letters = np.empty((rows, 9), np.uint8)
    letters[:, 0] = ord("-")
    for index in range(8):
        letters[:, index + 1] = _HEX[(hashed >> np.uint64(16 + 4 * index)) & np.uint64(15)]
    # A directory of an image of 50 million inodes or more has a million files.
    million = np.uint8(48) + (value // 1_000_000 % 10).astype(np.uint8)
    columns = [
        _TEXTS.column(form),
        large_rows.Column(million[:, None], (_NUMBERED[form] & (value >= 1_000_000)) * 1),
        large_rows.Column(digits, 6 * _NUMBERED[form]),
        large_rows.Column(letters, 9 * _WITH_HASH[form]),
        _ENDINGS.column(form),
    ]
    return padded(large_rows.joined(columns), large_rows.total(columns), NAME_BYTES)
