"""The worlds that were played, by family and tree: a table of docs/faults.md that adds up."""

import hashlib
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Final

from tests import PACKAGES, ROOT

HEADING: Final = "## Lives"
MOST_SEEDS: Final = 5
"""The table names this number of seeds of a row, and counts the others."""
_ROW: Final = re.compile(
    r"\| `(?P<family>[^`]+)` \| (?P<tree>\w+) \| (?P<lives>[\d,]+) \|"
    r" (?P<failed>[\d,]+)(?: \((?P<seeds>[\d, ]+)\))? \| (?P<day>[\d-]+) \|"
)
_HEAD: Final = ("| family | tree | lives | broke (seeds) | last played |", "|---|---|---|---|---|")


@dataclass(frozen=True, slots=True)
class Lives:
    """The worlds of one family that were played on one tree."""

    family: str
    tree: str
    count: int
    failed: int
    seeds: tuple[int, ...]
    """Of those that broke, the first few."""
    day: str


def lives_of(
    command: str, figures: Mapping[str, object], tree: str | None, day: str
) -> Lives | None:
    """Return what a turn of a night played, by its command and the object that it printed.

    Returns nothing for a turn that counts no seeds, and for a tree without a name.
    """
    words = shlex.split(command)
    if tree is None or "soak" not in words or "--seeds" not in words:
        return None
    named = takewhile(lambda word: word != "--seeds", words[words.index("soak") + 1 :])
    match figures:
        case {"seeds": int(count), "failed": int(failed), "failures": [*failures]}:
            seeds = tuple(
                int(one["seed"]) for one in failures[:MOST_SEEDS] if isinstance(one, dict)
            )
            return Lives(" ".join(named), tree, count, failed, seeds, day)
        case _:
            return None


def added(rows: Sequence[Lives], new: Lives) -> list[Lives]:
    """Return the rows with these lives in the row of their family and tree, or in a new one."""
    for at, row in enumerate(rows):
        if (row.family, row.tree) == (new.family, new.tree):
            both = replace(
                new,
                count=row.count + new.count,
                failed=row.failed + new.failed,
                seeds=tuple(dict.fromkeys((*row.seeds, *new.seeds)))[:MOST_SEEDS],
            )
            return [*rows[:at], both, *rows[at + 1 :]]
    return [*rows, new]


def read(page: str) -> list[Lives]:
    """Return the rows of a page's table.  Raises ValueError for a row that it cannot read."""
    rows = []
    for line in _table_of(page)[len(_HEAD) :]:
        found = _ROW.fullmatch(line)
        if found is None:
            raise ValueError(f"the table below {HEADING!r} has a line that is no row: {line!r}")
        seeds = tuple(int(one) for one in (found["seeds"] or "").split(", ") if one)
        count, failed = (int(found[name].replace(",", "")) for name in ("lives", "failed"))
        rows.append(Lives(found["family"], found["tree"], count, failed, seeds, found["day"]))
    return rows


def written(page: str, rows: Sequence[Lives]) -> str:
    """Return the page with these rows as its table."""
    old = "\n".join(_table_of(page))
    return page.replace(old, "\n".join((*_HEAD, *(_shown(row) for row in rows))))


def note(page: Path, new: Lives) -> None:
    """Add these lives to the table of that page; the file is replaced as a whole."""
    text = page.read_text()
    part = page.with_name(f".{page.name}.part")
    part.write_text(written(text, added(read(text), new)))
    part.replace(page)


def tree() -> str | None:
    """Return a name of the product's content at the checkout's commit.

    Returns nothing where the product is changed, or there is no git: no other machine could play
    the same tree.
    """
    if _git("status", "--porcelain", "--", *PACKAGES) != "":
        return None
    content = _git("ls-tree", "HEAD", "--", *PACKAGES)
    return hashlib.sha256(content.encode()).hexdigest()[:12] if content else None


def _shown(row: Lives) -> str:
    seeds = f" ({', '.join(map(str, row.seeds))})" if row.seeds else ""
    return f"| `{row.family}` | {row.tree} | {row.count:,} | {row.failed:,}{seeds} | {row.day} |"


def _table_of(page: str) -> list[str]:
    lines = page[page.index(HEADING) :].splitlines()
    first = lines.index(_HEAD[0])
    return list(takewhile(lambda line: line.startswith("|"), lines[first:]))


def _git(*words: str) -> str | None:
    done = subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False, timeout=30
    )
    return None if done.returncode else done.stdout
