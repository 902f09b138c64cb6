"""The disks of hosts: small file systems that fill up, can be read only, or flush slowly."""

import contextlib
import shutil
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.campaigns.soak.faults.hosts import DATANODES, SERVERS
from tests.campaigns.soak.faults.network import run

DISK_MEGABYTES: Final = 200
_FILLER: Final = "filler"
_PIECE: Final = b"\0" * (1 << 20)
_SOURCE: Final = Path(__file__).with_name("spoilt.c")
_NUMBERS: Final = "=qq"


@dataclass(frozen=True, slots=True)
class Disks:
    """One small file system a server, below ``directory``; they are mounted in place."""

    directory: Path

    @property
    def mounts(self) -> tuple[Path, ...]:
        return tuple(map(self.place, (*SERVERS, *DATANODES)))

    def place(self, host: str) -> Path:
        return self.directory / "data" / host

    def up(self) -> None:
        for place in self.mounts:
            place.mkdir(parents=True)
            run("mount", "-t", "tmpfs", "-o", f"size={DISK_MEGABYTES}m", "tmpfs", str(place))

    def fill(self, host: str) -> None:
        with (self.place(host) / _FILLER).open("wb", buffering=0) as filler:
            with contextlib.suppress(OSError):
                while True:
                    filler.write(_PIECE)
            with contextlib.suppress(OSError):
                while True:
                    filler.write(b"\0")

    def make_room(self, host: str) -> None:
        """End what ``fill`` began."""
        (self.place(host) / _FILLER).unlink(missing_ok=True)

    def read_only(self, host: str) -> None:
        """Mount it so; the kernel refuses that while a process has a file open for writing."""
        run("mount", "-o", "remount,ro", str(self.place(host)))

    def writable(self, host: str) -> None:
        """End what ``read_only`` began."""
        run("mount", "-o", "remount,rw", str(self.place(host)))

    def wipe(self, host: str) -> None:
        for entry in self.place(host).iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink()


@dataclass(frozen=True, slots=True)
class Preloads:
    """A library in the processes of servers, by which their flushes and their clocks are spoilt.

    Without a compiler there is none; ``lacking`` says which faults cannot be played then.
    """

    directory: Path
    library: Path | None

    @classmethod
    def built(cls, directory: Path) -> "Preloads":
        """Compile the library; raises LocalClusterError where the compiler refuses."""
        (directory / "spoilt").mkdir()
        if shutil.which("gcc") is None:
            return cls(directory, None)
        library = directory / "spoilt.so"
        run("gcc", "-O2", "-shared", "-fPIC", "-o", str(library), str(_SOURCE), "-ldl")
        return cls(directory, library)

    @property
    def lacking(self) -> Mapping[str, str]:
        """The kinds of faults that cannot be played, and why."""
        if self.library is not None:
            return {}
        return dict.fromkeys(
            ("slow disk", "clock"), "there is no gcc (Debian: apt-get install gcc)"
        )

    def environment(self, host: str) -> dict[str, str]:
        if self.library is None:
            return {}
        if not self._numbers(host).exists():
            self._numbers(host).write_bytes(struct.pack(_NUMBERS, 0, 0))
        return {"LD_PRELOAD": str(self.library), "NNHA_SPOILT": str(self._numbers(host))}

    def set_flush(self, host: str, milliseconds: int) -> None:
        """Let each flush of a host's files take this much longer from now on."""
        self._write(host, 0, milliseconds)

    def set_clock(self, host: str, offset_seconds: float) -> None:
        """Let a host's wall clock differ from ours from now on; time itself runs as before."""
        self._write(host, 1, round(offset_seconds * 1e9))

    def _write(self, host: str, index: int, number: int) -> None:
        with self._numbers(host).open("r+b", buffering=0) as file:
            file.seek(8 * index)
            file.write(struct.pack("=q", number))

    def _numbers(self, host: str) -> Path:
        return self.directory / "spoilt" / host
