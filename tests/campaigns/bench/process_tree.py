"""What a process and all its descendants take: CPU seconds and memory, looked at now and then."""

import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_PROC: Final = Path("/proc")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_SECONDS_BETWEEN: Final = 0.1


@dataclass(slots=True)
class Taken:
    """One process: its name, CPU seconds so far, and the most memory it ever had, in bytes.

    That is the kernel's VmHWM, which counts mapped files, too: some 41 MB of libraries in a driver.
    """

    name: str
    cpu_seconds: float
    peak_bytes: int


@dataclass(slots=True)
class Tree:
    """The processes seen, by id; those that have ended count with what was seen last."""

    root: int
    seen: dict[int, Taken] = field(default_factory=dict)

    def cpu_seconds(self) -> float:
        return sum(taken.cpu_seconds for taken in self.seen.values())

    def driver_peak(self) -> int:
        """Bytes of the first process at most."""
        return self.seen[self.root].peak_bytes if self.root in self.seen else 0

    def jvm_peak(self) -> int:
        return max(
            (each.peak_bytes for each in self.seen.values() if each.name == "java"), default=0
        )

    def worker_peak(self) -> int:
        """Bytes of the largest other process at most."""
        others = (
            each.peak_bytes
            for pid, each in self.seen.items()
            if pid != self.root and each.name != "java"
        )
        return max(others, default=0)

    def look(self) -> None:
        children: dict[int, list[int]] = {}
        stats: dict[int, tuple[str, float]] = {}
        for entry in _PROC.iterdir():
            if entry.name.isdigit():
                found = _stat(entry)
                if found is not None:
                    parent, name, cpu = found
                    children.setdefault(parent, []).append(int(entry.name))
                    stats[int(entry.name)] = name, cpu
        waiting = [self.root]
        while waiting:
            pid = waiting.pop()
            waiting += children.get(pid, [])
            if pid in stats:
                name, cpu = stats[pid]
                before = self.seen.get(pid)
                peak = max(_peak(pid), before.peak_bytes if before else 0)
                self.seen[pid] = Taken(name, cpu, peak)


def _stat(entry: Path) -> tuple[int, str, float] | None:
    """Return parent, name and CPU seconds; None if the process has ended."""
    try:
        text = (entry / "stat").read_text()
    except OSError:
        return None
    name = text[text.index("(") + 1 : text.rindex(")")]
    rest = text[text.rindex(")") + 2 :].split()
    return int(rest[1]), name, (int(rest[11]) + int(rest[12])) / _TICKS


def _peak(pid: int) -> int:
    try:
        for line in (_PROC / str(pid) / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


class Watch:
    """Looks at a process tree for as long as a ``with`` lasts."""

    def __init__(self, pid: int) -> None:
        self.tree = Tree(pid)
        self._end = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._go, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        stack: TracebackType | None,
    ) -> None:
        self._end.set()
        self._thread.join()

    def now(self) -> float:
        with self._lock:
            self.tree.look()
            return self.tree.cpu_seconds()

    def _go(self) -> None:
        while not self._end.wait(_SECONDS_BETWEEN):
            with self._lock:
                self.tree.look()
