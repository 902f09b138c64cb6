"""Keeps every edit of a cluster that purges, and sees to it that none goes too early."""

import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from deploy.local.cluster.layout import NAMESERVICE, Layout
from deploy.local.workload.audit import JournalEdits, read_journal
from journal.quorum import majority
from namenode_sim.edits.segment_file import named_range
from namenode_sim.storage.retention import IMAGE

LOOK_SECONDS = 0.05


@dataclass
class JournalWatch:
    """Looks at the files of all JournalNodes and name directories, again and again.

    ``too_early`` has each look at which a JournalNode lacked edits that no NameNode had an image of
    in a majority of its name directories.
    """

    layout: Layout
    name_dirs: Mapping[str, Sequence[Path]]
    archive: Path
    too_early: list[str] = field(default_factory=list)
    looks: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> "JournalWatch":
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def first_edits(self) -> dict[str, int]:
        found = {}
        for name in self.layout.journalnodes:
            firsts = [r.first for path in _files(self._current(name)) if (r := named_range(path))]
            found[name] = min(firsts, default=1)
        return found

    def durable_image(self) -> int:
        return max(self._durable_of(name) for name in self.name_dirs)

    def images_of(self, namenode: str) -> list[int]:
        held = []
        for folder in self.name_dirs[namenode]:
            names = set(_files(folder / "current"))
            whole = [int(m[1]) for n in names if (m := IMAGE.fullmatch(n)) and f"{n}.md5" in names]
            held.append(max(whole, default=-1))
        return held

    def whole_journal(self) -> JournalEdits:
        """Return every edit that was ever in a closed segment, and those in the open ones."""
        self._keep(is_open=True)
        return read_journal(replace(self.layout, directory=self.archive))

    def _watch(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            self._keep(is_open=False)
            # In this order: an image that comes in between excuses nothing that went before it.
            first, durable = max(self.first_edits().values()), self.durable_image()
            self.looks += 1
            if first > durable + 1:
                self.too_early.append(f"edits up to {first - 1} were gone, images go to {durable}")

    def _keep(self, *, is_open: bool) -> None:
        for name in self.layout.journalnodes:
            target = self.archive / "data" / name / NAMESERVICE / "current"
            target.mkdir(parents=True, exist_ok=True)
            for file in _files(self._current(name)):
                found = named_range(file)
                if found is None or (found.last is None and not is_open):
                    continue
                with suppress(FileExistsError, FileNotFoundError):
                    os.link(self._current(name) / file, target / file)

    def _current(self, journalnode: str) -> Path:
        return self.layout.edits_dir(journalnode) / NAMESERVICE / "current"

    def _durable_of(self, namenode: str) -> int:
        held = sorted(self.images_of(namenode), reverse=True)
        return held[majority(len(held)) - 1]


def _files(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return []
