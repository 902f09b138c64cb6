"""Runs ``nnha checkpoint merge`` as a process of its own: it may take gigabytes, and be killed."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol

import structlog

from ha.record import dataclass
from spark.ends.sources.model import Staged

log = structlog.get_logger()

LOG_NAME: Final = "merge.log"
PROGRAM: Final = (sys.executable, "-m", "nnha", "checkpoint", "merge", "--end-with-stdin")
GRACE_SECONDS: Final = 10.0
_TAIL_BYTES: Final = 2000


class MergeFailed(Exception):
    """The merge ended without an image; the message has the end of what it said."""


class Merger(Protocol):
    """Makes a newer image of what was staged."""

    async def merge(self, staged: Staged, out: Path) -> Path:
        """Make the image, in ``out`` with its digest, and return its path.

        Raises:
            MergeFailed: if there is none; nothing half-done is left under an image's name.
        """
        ...


@dataclass(frozen=True, slots=True)
class MergeProcess:
    """The command, in a process group of its own, which ends with ours even if we are killed.

    Args:
        arguments: what follows ``nnha checkpoint merge``, such as ``--engine auto``.
        log_folder: where its log is kept, the last run's only.
        program: the command itself.
    """

    arguments: Sequence[str]
    log_folder: Path
    program: Sequence[str] = PROGRAM

    async def merge(self, staged: Staged, out: Path) -> Path:
        """See ``Merger``.  Cancelled, it ends the whole group before it returns."""
        said = self.log_folder / LOG_NAME
        with said.open("wb") as file, _parent_pipe() as stdin:
            starting = asyncio.ensure_future(
                asyncio.create_subprocess_exec(
                    *self._command(staged, out),
                    stdin=stdin,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=file,
                    start_new_session=True,
                )
            )
            try:
                # Cancelled while it starts, its first children may run already: see it through.
                process = await asyncio.shield(starting)
                printed, _ = await process.communicate()
            finally:
                await _end_group(await starting)
        if process.returncode != 0:
            raise MergeFailed(f"exit code {process.returncode}: {_tail(said)}")
        return _image_of(printed, said)

    def _command(self, staged: Staged, out: Path) -> list[str]:
        places = ("--image", staged.image, "--edits", staged.edits, "--out", out)
        return [
            *self.program,
            *map(str, places),
            "--json",
            *self.arguments,
        ]


@contextmanager
def _parent_pipe() -> Iterator[int]:
    """Open a pipe that nothing is written to: it ends when we do, whatever ends us."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(writing)


async def _end_group(process: asyncio.subprocess.Process) -> None:
    """End all processes of a merge, its JVM and its Python workers too."""
    if process.returncode is None:
        log.info("checkpoint.merge_ended_early", pid=process.pid)
        _signal(process.pid, signal.SIGTERM)
        # Not asyncio.timeout: Python 3.11.2, which is Debian's, takes it in a task that is being
        # cancelled for one more cancellation, and nothing below would be done.
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), GRACE_SECONDS)
    _signal(process.pid, signal.SIGKILL)
    await process.wait()


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _image_of(printed: bytes, said: Path) -> Path:
    lines = printed.decode("utf-8", "replace").strip().splitlines()
    try:
        return Path(json.loads(lines[-1])["image"])
    except (IndexError, ValueError, KeyError, TypeError) as problem:
        raise MergeFailed(f"it did not say where its image is: {_tail(said)}") from problem


def _tail(said: Path) -> str:
    data = said.read_bytes()[-_TAIL_BYTES:]
    return " ".join(data.decode("utf-8", "replace").split()) or f"nothing in {said}"
