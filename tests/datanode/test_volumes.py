"""The space of volumes: which get a new replica, and which disks have failed."""

import asyncio
import errno
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest

from datanode import model
from datanode.errors import NoRoom, ReplicaMissing, VolumeFailed
from datanode.replicas.volume import Usage, Volume
from datanode.replicas.volumes import FULL, StorageUse, Volumes
from hadoop.blocks import GenerationStamp
from tests.datanode.block_client import until
from tests.datanode.stores import block, volume
from tests.log_lines import captured

A, B, C = (model.StorageId(f"DS-{name}") for name in "abc")
FREE, CAPACITY = 1000, 3000
PLANTED = "planted"


class Disk:
    """A volume on a disk whose size and health a test sets."""

    def __init__(self, of: Volume) -> None:
        self._volume = of
        self.directory, self.path, self.storage = of.directory, of.path, of.storage
        self.free = FREE
        self.refusal = 0
        """The number of the error that whoever looks at it meets; 0: none."""
        self.answers = threading.Event()
        self.answers.set()
        self.closed = False

    def usage(self) -> Usage:
        assert self.answers.wait(30)
        if self.refusal not in FULL:
            self.check()
        return Usage(CAPACITY, self.free)

    def check(self) -> None:
        if self.refusal:
            raise OSError(self.refusal, PLANTED)

    def close(self) -> None:
        self._volume.close()
        self.closed = True


def disk(folder: Path, storage_type: str = "DISK") -> Disk:
    return Disk(volume(folder, f"DS-{folder.name}", storage_type))


@asynccontextmanager
async def on(*disks: Disk, kept_free: int = 0) -> AsyncIterator[Volumes]:
    volumes = Volumes(cast("Sequence[Volume]", disks), kept_free=kept_free)
    try:
        yield volumes
    finally:
        await volumes.close()


def test_what_others_use_is_never_below_zero() -> None:
    assert StorageUse(A, "DISK", capacity=10, used=3, remaining=5).used_by_others == 2
    assert StorageUse(A, "DISK", capacity=10, used=6, remaining=5).used_by_others == 0


SPACE = {
    "nothing is kept free": (0, CAPACITY, FREE),
    "some is kept free": (100, CAPACITY - 100, FREE - 100),
    "more is kept free than there is": (CAPACITY + 1, 0, 0),
}


@pytest.mark.parametrize(("kept_free", "capacity", "remaining"), SPACE.values(), ids=SPACE)
async def test_what_is_kept_free_is_not_told_of(
    tmp_path: Path, kept_free: int, capacity: int, remaining: int
) -> None:
    async with on(disk(tmp_path / "a", "SSD"), kept_free=kept_free) as volumes:
        assert volumes.usage() == [StorageUse(A, "SSD", capacity, 0, remaining)]


async def test_space_is_looked_at_when_it_is_measured(tmp_path: Path) -> None:
    one, other = disk(tmp_path / "a"), disk(tmp_path / "b")
    async with on(one, other) as volumes:
        one.free = other.free = 10
        assert [use.remaining for use in volumes.usage()] == [FREE, FREE]
        await volumes.measure()
        assert [use.remaining for use in volumes.usage()] == [10, 10]


META = 7 + 4
"""Bytes of the meta file of a block with one chunk."""
USES: dict[str, tuple[model.Replica, int, int]] = {
    "a whole one": (model.Finalized(block(), A, 100), 100 + META, 0),
    "an open one": (model.BeingWritten(block(), A, 100, reserved=150), 100 + META, 50),
    "an open one that is longer": (
        model.BeingWritten(block(), A, 200, reserved=150),
        200 + META,
        0,
    ),
    "a copy": (model.Temporary(block(), A, 100, reserved=150), 100 + META, 50),
    "one that waits": (model.WaitingForRecovery(block(), A, 0), 7, 0),
    "one in recovery": (
        model.UnderRecovery(model.BeingWritten(block(), A, 100, reserved=150), GenerationStamp(9)),
        100 + META,
        0,
    ),
    "one on a volume that has failed": (model.Finalized(block(), C, 100), 0, 0),
}


@pytest.mark.parametrize(("replica", "used", "reserved"), USES.values(), ids=USES)
async def test_the_space_of_a_replica(
    tmp_path: Path, replica: model.Replica, used: int, reserved: int
) -> None:
    async with on(disk(tmp_path / "a"), disk(tmp_path / "b")) as volumes:
        volumes.account(replica, 1)
        found, other = volumes.usage()
        assert (found.used, found.remaining) == (used, FREE - reserved)
        assert (other.used, other.remaining) == (0, FREE)
        volumes.account(replica, -1)
        assert [(use.used, use.remaining) for use in volumes.usage()] == [(0, FREE)] * 2


STEPS = {
    "within what was reserved": [100, 300, 500],
    "beyond it at once": [600],
    "beyond it in steps": [400, 510, 520],
    "over a chunk": [511, 513],
}


@pytest.mark.parametrize("kind", [model.BeingWritten, model.Temporary])
@pytest.mark.parametrize("lengths", STEPS.values(), ids=STEPS)
async def test_what_grows_takes_what_was_reserved(
    tmp_path: Path, lengths: list[int], kind: type[model.BeingWritten | model.Temporary]
) -> None:
    async with on(disk(tmp_path / "a")) as volumes:
        volumes.account(kind(block(), A, reserved=500), 1)
        for before, length in pairwise([0, *lengths]):
            grown = kind(block(), A, length, reserved=500)
            volumes.grew(grown, length - before)
            (use,) = volumes.usage()
            assert use.remaining == FREE - max(0, 500 - length)
            assert use.used == length + 7 + 4 * -(-length // 512)
        told = volumes.usage()
        volumes.grew(kind(block(), C, 100, reserved=500), 100)
        assert volumes.usage() == told


async def test_a_volume_is_chosen_by_wish_type_and_turn(tmp_path: Path) -> None:
    disks = [disk(tmp_path / "a"), disk(tmp_path / "b", "SSD"), disk(tmp_path / "c")]
    async with on(*disks, kept_free=100) as volumes:
        choose = volumes.choose
        assert [choose(900, "DISK") for _ in range(4)] == [C, A, C, A]
        assert choose(900, "DISK", wish=B) == B
        assert choose(900, "DISK", wish="DS-none") == C
        assert [choose(900, "ARCHIVE") for _ in range(3)] == [A, B, C]
        disks[1].free = 2000
        await volumes.measure()
        assert choose(901, "DISK", wish=A) == B
        with pytest.raises(NoRoom, match=r"^none of 3 volumes has 1901 bytes left, beside 100 "):
            choose(1901, "DISK")


Outcome = tuple[type[Exception], str, list[model.StorageId]]
REFUSALS: dict[str, tuple[int, int, Outcome]] = {
    "a disk that works again": (errno.EIO, 0, (VolumeFailed, PLANTED, [])),
    "a disk that does not": (errno.EIO, errno.EROFS, (VolumeFailed, PLANTED, [A])),
    "a full one": (errno.ENOSPC, errno.ENOSPC, (NoRoom, "is full", [])),
    "a full one on which a little can be written": (errno.ENOSPC, 0, (NoRoom, "is full", [])),
    "a quota that is used up": (errno.EDQUOT, errno.EDQUOT, (NoRoom, "is full", [])),
    "a full one that fails": (errno.ENOSPC, errno.EIO, (NoRoom, "is full", [A])),
    "a file that is gone": (errno.ENOENT, 0, (FileNotFoundError, PLANTED, [])),
    "all files are gone": (errno.ENOENT, errno.ENOENT, (VolumeFailed, PLANTED, [A])),
    "a file that is there": (errno.EEXIST, errno.EIO, (VolumeFailed, PLANTED, [])),
    "too many open files": (errno.EMFILE, errno.EIO, (VolumeFailed, PLANTED, [])),
    "too many open files of all": (errno.ENFILE, errno.EIO, (VolumeFailed, PLANTED, [])),
}


@pytest.mark.parametrize(("met", "found", "outcome"), REFUSALS.values(), ids=REFUSALS)
async def test_a_disk_that_refuses(tmp_path: Path, met: int, found: int, outcome: Outcome) -> None:
    kind, why, lost = outcome
    one = disk(tmp_path / "a")
    async with on(one, disk(tmp_path / "b")) as volumes:
        heard: list[model.StorageId] = []
        volumes.on_failed = heard.append

        def work() -> None:
            one.refusal = found
            raise OSError(met, PLANTED)

        began = time.time()
        with pytest.raises(kind, match=why):
            await volumes.run(A, work)
        assert heard == lost
        assert [entry.volume.storage for entry in volumes.failed] == lost
        assert list(volumes.types) == [one for one in (A, B) if one not in lost]
        for entry in volumes.failed:
            assert entry.capacity == CAPACITY
            assert began <= entry.at <= time.time()
            with pytest.raises(ReplicaMissing, match=r"^the volume DS-a has failed$"):
                await volumes.run(A, one.check)
        assert await volumes.run(B, volumes[B].path.exists)


LOGGED = {
    "an error": (errno.EIO, 0, "warning", "datanode.disk_error", [FREE]),
    "a full disk": (errno.ENOSPC, 0, "warning", "datanode.disk_full", [10]),
    "a quota that is used up": (errno.EDQUOT, errno.ENOSPC, "warning", "datanode.disk_full", [10]),
    "a failure": (errno.EIO, errno.EIO, "error", "datanode.volume_failed", []),
}


@pytest.mark.parametrize(
    ("met", "found", "level", "event", "remaining"), LOGGED.values(), ids=LOGGED
)
async def test_what_is_said_of_a_disk(
    tmp_path: Path, met: int, found: int, level: str, event: str, remaining: list[int]
) -> None:
    """Measure a full disk at once."""
    one = disk(tmp_path / "a")
    async with on(one) as volumes:
        one.refusal, one.free = found, 10
        with captured("datanode.") as logs:
            await volumes.suspect(A, OSError(met, PLANTED))
            await volumes.suspect(model.StorageId("DS-none"), OSError(met, PLANTED))
        (told,) = logs
        assert (told["log_level"], told["event"], told["path"]) == (level, event, str(one.path))
        assert PLANTED in told["why"]
        assert [use.remaining for use in volumes.usage()] == remaining


async def test_a_volume_that_fails_while_it_is_measured(tmp_path: Path) -> None:
    one, other = disk(tmp_path / "a"), disk(tmp_path / "b")
    async with on(one, other) as volumes:
        one.refusal, other.free = errno.EIO, 10
        await volumes.measure()
        assert [(use.storage, use.remaining) for use in volumes.usage()] == [(B, 10)]


async def test_a_volume_that_fails_while_another_is_measured(tmp_path: Path) -> None:
    one, other = disk(tmp_path / "a"), disk(tmp_path / "b")
    async with on(one, other) as volumes:
        volumes.on_failed = lambda _: one.answers.set()
        other.refusal = errno.EIO
        one.answers.clear()
        measured = asyncio.create_task(volumes.measure())
        await volumes.suspect(B, OSError(errno.EIO, PLANTED))
        await measured
        assert list(volumes.types) == [A]


async def test_a_volume_fails_once(tmp_path: Path) -> None:
    """Let one wait in the meantime; it must hold up no other."""
    one, problem = disk(tmp_path / "a"), OSError(errno.EIO, PLANTED)
    async with on(one) as volumes:
        one.refusal = errno.EIO
        released = threading.Event()
        first, again = (asyncio.create_task(volumes.suspect(A, problem)) for _ in range(2))
        waiting = asyncio.create_task(volumes.run(A, partial(released.wait, 5)))
        await asyncio.wait([first])
        released.set()
        assert await waiting
        await again
        assert [lost.volume.storage for lost in volumes.failed] == [A]
        await until(lambda: not threads_of("a"))


def threads_of(name: str) -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith(f"volume {name}")]


async def test_a_volume_has_one_thread_until_it_is_closed(tmp_path: Path) -> None:
    one = disk(tmp_path / "one-thread")
    async with on(one) as volumes:
        storage = one.storage
        await asyncio.gather(*(volumes.run(storage, one.check) for _ in range(3)))
        assert threads_of("one-thread") == ["volume one-thread_0"]
    assert threads_of("one-thread") == []


async def test_closing_waits_for_what_is_being_done(tmp_path: Path) -> None:
    one, released = disk(tmp_path / "a"), threading.Event()

    def work() -> bool:
        assert released.wait(30)
        return one.closed

    async with on(one) as volumes:
        working = asyncio.create_task(volumes.run(A, work))
        await asyncio.sleep(0)
        threading.Timer(0.1, released.set).start()
    assert await working is False
    assert one.closed


async def test_closing_unlocks_what_has_failed_as_well(tmp_path: Path) -> None:
    one = disk(tmp_path / "a")
    async with on(one, disk(tmp_path / "b")) as volumes:
        one.refusal = errno.EIO
        await volumes.suspect(A, OSError(errno.EIO, PLANTED))
    for name in "ab":
        volume(tmp_path / name).close()
