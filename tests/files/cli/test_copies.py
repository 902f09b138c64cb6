"""What a copy leaves on this machine and in HDFS when it ends in the middle."""

import asyncio
import os
from pathlib import Path
from typing import cast

import pytest

from files.cli import copies
from files.cli.copies import (
    clean_up,
    folder_or_name,
    new_file,
    opened,
    read,
)
from files.cli.session import Failed, Session
from files.cli.spelling import Unfit
from files.cli.tree import Tree
from files.errors import AlreadyExists, OutcomeUnknown, Unreachable, Unwritable
from files.write import Writer
from ha.conf.configuration import Configuration
from ha.console.cluster_options import ClusterCommand
from tests.files.world import folder_of_bobs, get, mode_of, put, world


def test_a_file_has_its_name_only_when_all_of_it_is_there(tmp_path: Path) -> None:
    target = tmp_path / "a"
    with new_file(target, 4, overwrite=False) as write:
        write(b"ab")
        assert [one.name for one in tmp_path.iterdir()] == ["a._COPYING_"]
        write(b"cd")
    assert [one.name for one in tmp_path.iterdir()] == ["a"]
    assert target.read_bytes() == b"abcd"


@pytest.mark.parametrize("error", [Unwritable("why"), KeyboardInterrupt(), TimeoutError("why")])
def test_a_copy_that_fails_leaves_what_was_there(tmp_path: Path, error: BaseException) -> None:
    target = tmp_path / "a"
    target.write_bytes(b"old")

    def fail() -> None:
        with new_file(target, 4, overwrite=True) as write:
            write(b"ne")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert [one.name for one in tmp_path.iterdir()] == ["a"]
    assert target.read_bytes() == b"old"


def test_a_copy_that_is_too_short_is_none(tmp_path: Path) -> None:
    with (
        pytest.raises(Failed, match="not all of 4 bytes"),
        new_file(tmp_path / "a", 4, overwrite=False) as write,
    ):
        write(b"abc")
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_stays_without_f(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "folder").mkdir()
    for name, overwrite in (("a", False), ("folder", True), ("folder", False)):
        with (
            pytest.raises(Unfit, match="there already"),
            new_file(tmp_path / name, 0, overwrite=overwrite),
        ):
            pass
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_full_disk_is_named() -> None:
    with (
        pytest.raises(Failed, match=r"/nowhere/a.* on this machine: No such file"),
        new_file(Path("/nowhere/a"), 0, overwrite=False),
    ):
        pass


def test_where_files_may_be_put(tmp_path: Path) -> None:
    text = str(tmp_path)
    assert folder_or_name("-", several=True) is None
    assert folder_or_name(text, several=True) == tmp_path
    assert folder_or_name(f"file://{text}/a", several=False) == tmp_path / "a"
    for place, several in ((f"{text}/a", True), (f"{text}/a/", False), (f"{text}/a/b", False)):
        with pytest.raises(Unfit, match="there is no folder"):
            folder_or_name(place, several=several)


async def test_a_pipe_is_read_while_the_loop_goes_on(tmp_path: Path) -> None:
    source, sink = os.pipe()
    asking = asyncio.ensure_future(read(source, waits=True))
    await asyncio.sleep(0)
    assert not asking.done()
    os.write(sink, b"abc")
    assert await asking == b"abc"
    os.close(sink)
    assert await read(source, waits=True) == b""
    os.close(source)
    with opened(Path("/dev/zero")) as (zero, size, names):
        assert (size, names) == (None, None)
        assert len(await read(zero, waits=True)) == copies.CHUNK_BYTES
    (tmp_path / "b").write_bytes(b"1")
    (tmp_path / "a").mkdir()
    with opened(tmp_path) as (_, size, names):
        assert (size, names) == (None, ["a", "b"])
    with opened(tmp_path / "b") as (plain, size, names):
        assert (size, names, await read(plain, waits=False)) == (1, None, b"1")
    with pytest.raises(Unfit, match="no such file"), opened(tmp_path / "none"):
        pass


class Left:
    """A writer whose file can be removed, or not."""

    def __init__(self, problem: Exception | None) -> None:
        self.problem = problem
        self.asked = 0

    async def discard(self) -> None:
        self.asked += 1
        if self.problem is not None:
            raise self.problem


CASES = {
    "removed": (None, Unwritable("why"), False),
    "removed after Ctrl-C": (None, asyncio.CancelledError(), False),
    "no NameNode after Ctrl-C": (Unreachable("gone"), asyncio.CancelledError(), True),
    "no NameNode after a call without an answer": (Unreachable("x"), OutcomeUnknown("y"), True),
}


@pytest.mark.parametrize("name", CASES)
async def test_what_is_left_in_hdfs_is_said(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    problem, failure, is_said = CASES[name]
    left = Left(problem)
    await clean_up(cast(Writer, left), "/a._COPYING_", failure)
    assert left.asked == 1
    assert ("/a._COPYING_ may be left" in capsys.readouterr().err) is is_said


async def test_a_failure_says_what_it_left() -> None:
    with pytest.raises(Failed, match=r"why\. /a\._COPYING_ may be left; nnha fs rm"):
        await clean_up(cast(Writer, Left(Unreachable("x"))), "/a._COPYING_", Unwritable("why"))


@pytest.mark.parametrize(
    ("failure", "is_said"),
    [(asyncio.CancelledError(), True), (OutcomeUnknown("x"), True), (Unreachable("x"), False)],
)
async def test_a_file_that_may_have_been_created_is_named(
    failure: BaseException, is_said: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    await clean_up(None, "/a._COPYING_", failure)
    assert ("may be left" in capsys.readouterr().err) is is_said


@pytest.mark.parametrize("overwrite", [False, True])
async def test_a_file_that_has_come_while_another_was_copied_stays_without_f(
    tmp_path: Path, *, overwrite: bool
) -> None:
    source, sink = os.pipe()
    begun = asyncio.Event()
    async with world(tmp_path, 1) as made:
        place = ClusterCommand(Configuration({}, {}), "ns1", "json")
        session = Session("fs put", place, Tree(made.client, "hdfs", "ns1"))

        def note(_: int) -> None:
            begun.set()

        copy = asyncio.ensure_future(
            copies.store_file(session, source, None, "/a", note, overwrite=overwrite)
        )
        os.write(sink, b"ours")
        await begun.wait()
        await put(made.client, "/a", b"theirs")
        os.close(sink)
        failure = (await asyncio.gather(copy, return_exceptions=True))[0]
        assert isinstance(failure, AlreadyExists) is not overwrite, failure
        assert await get(made.client, "/a") == (b"ours" if overwrite else b"theirs")
        assert await session.tree.status("/a._COPYING_") is None
    os.close(source)


async def test_a_copy_has_the_mode_that_a_default_acl_gives_it(tmp_path: Path) -> None:
    async with world(tmp_path / "hdfs", datanodes=1) as made:
        place = ClusterCommand(Configuration({}, {}), "ns1", "json")
        session = Session("fs put", place, Tree(made.client, "hdfs", "ns1"))
        await folder_of_bobs(made.client, "/d")
        (tmp_path / "a").write_bytes(b"ours")
        with (tmp_path / "a").open("rb") as source:
            await copies.store_file(
                session, source.fileno(), 4, "/d/a", lambda _: None, overwrite=False
            )
        assert await mode_of(made.client, "/d/a") == 0o664
