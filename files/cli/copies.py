"""``nnha fs put``, ``get``, ``cat`` and ``tail``: what files contain."""

import asyncio
import os
import posixpath
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from typing import Final

import click

from files.checksum import file_checksum
from files.cli.changes import PATHS, destination, umask
from files.cli.completion import first_word, remote_paths
from files.cli.forms import Entry, size_text
from files.cli.session import Failed, Session, about_files
from files.cli.spelling import Unfit, child, quoted
from files.errors import FilesError, OutcomeUnknown
from files.read import Reader
from files.write import Writer
from ha.console.output import plain

PARTIAL: Final = "._COPYING_"
"""Behind the name of a copy that is not complete, as Hadoop has it."""
CHUNK_BYTES: Final = 1024 * 1024
TAIL_BYTES: Final = 1024
FOLLOW_SECONDS: Final = 1.0
CLEAN_SECONDS: Final = 10.0
"""How long the removal of a partial copy may take, when the copy has failed."""
OVERWRITE = click.option("-f", "overwrite", is_flag=True, help="Replace files that are there.")


def progress_line(name: str, done: int, total: int | None, seconds: float) -> str:
    """Return bytes, rate, and the time left where the whole is known."""
    rate = int(done / max(seconds, 0.001))
    of = "" if total is None else f" of {size_text(total)}"
    left = None if total is None or not rate else max(0, total - done) // rate
    ends = "" if left is None else f", {left // 3600}:{left // 60 % 60:02}:{left % 60:02} left"
    return f"{name}  {size_text(done)}{of}, {size_text(rate)}/s{ends}"


@contextmanager
def progress(name: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Yield what counts bytes, and shows on a terminal how far a long copy is."""
    began, done, due = time.monotonic(), 0, time.monotonic() + 1.0

    def add(count: int) -> None:
        nonlocal done, due
        done, now = done + count, time.monotonic()
        if now >= due and sys.stderr.isatty():
            due = now + 0.5
            line = progress_line(plain(name), done, total, now - began)
            click.echo(f"\r{line}\x1b[K", err=True, nl=False)

    try:
        yield add
    finally:
        if due > began + 1.0:
            click.echo("\r\x1b[K", err=True, nl=False)


@contextmanager
def local(path: Path) -> Iterator[None]:
    """Say which file of this machine an error is about."""
    try:
        yield
    except OSError as failure:
        raise Failed(f"{path} on this machine: {failure.strerror or failure}") from failure


def file_only(one: Entry) -> str:
    """Return the path of a file; raise Unfit for a directory."""
    if one.is_directory:
        raise Unfit("it is a directory", hint="nnha fs ls shows what is in it")
    return one.path


async def _print(reader: Reader, at: int = 0) -> int:
    """Write a file to standard output from a byte on; return where it ended."""
    async with aclosing(reader.read(at)) as parts:
        async for part in parts:
            sys.stdout.buffer.write(part)
            at += len(part)
    sys.stdout.buffer.flush()
    return at


@click.command()
@PATHS
@about_files("cat", ("table",))
async def cat(session: Session, *, paths: Sequence[str]) -> None:
    """Print files; each byte is checked against its checksum: nnha fs cat '/logs/part-*' > all"""
    for one in await session.named(paths):
        with session.trying(one.shown):
            await _print(await Reader.open(session.tree.namenodes, file_only(one)))


@click.command()
@PATHS
@about_files("checksum")
async def checksum(session: Session, *, paths: Sequence[str]) -> None:
    """Print the algorithm and Hadoop's checksum of files: nnha fs checksum /data/a"""
    for one in await session.named(paths):
        with session.trying(one.shown):
            found = await file_checksum(session.tree.namenodes, file_only(one))
            facts = {"algorithm": found.algorithm, "checksum": found.raw.hex()}
            line = f"{one.shown}\t{found.algorithm}\t{found.raw.hex()}"
            session.found({"path": one.path, **facts}, line)


@click.command()
@click.argument("path", shell_complete=remote_paths)
@click.option("-f", "follow", is_flag=True, help="Go on with what is written, until Ctrl-C.")
@about_files("tail", ("table",))
async def tail(session: Session, *, path: str, follow: bool) -> None:
    """Print the last kilobyte of a file; with -f also what is appended to it.

    What its writer has not flushed is not read. Neither a failover nor the end of the writer ends
    -f, since another may append: nnha fs tail -f /logs/today
    """
    for one in await session.named([path]):
        with session.trying(one.shown):
            reader = await Reader.open(session.tree.namenodes, file_only(one))
            at = await _print(reader, max(0, reader.length - TAIL_BYTES))
            while follow:
                await asyncio.sleep(FOLLOW_SECONDS)
                reader = await Reader.open(session.tree.namenodes, one.path, offset=at)
                if reader.length < at:
                    click.echo(f"nnha fs tail: {one.shown} was cut, or is another", err=True)
                    at = 0
                at = await _print(reader, at)


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="SOURCE... [TARGET]",
                shell_complete=first_word(remote_paths, None))  # fmt: skip
@OVERWRITE
@about_files("get")
async def get(session: Session, *, words: Sequence[str], overwrite: bool) -> None:
    """Copy SOURCEs, directories with all below, to TARGET on this machine; - is standard output.

    A file has its name when all of it is there and right. Until then it has ._COPYING_ behind it,
    and is removed if that fails: nnha fs get '/logs/*' /tmp/logs
    """
    sources, target = (words[:-1], words[-1]) if len(words) > 1 else (words, ".")
    found = await session.named(sources)
    with session.trying(target):
        place = folder_or_name(target, several=len(found) > 1)
        for one in found:
            await _fetch(session, one, place, overwrite=overwrite)


def folder_or_name(text: str, *, several: bool) -> Path | None:
    """Return an absolute path where files can be put, None for ``-``; raise Unfit otherwise."""
    if text == "-":
        return None
    place = Path(text.removeprefix("file://")).absolute()
    needed = place if several or text.endswith("/") else place.parent
    if not place.is_dir() and not (needed != place and needed.is_dir()):
        raise Unfit(f"there is no folder {needed} on this machine", "NO_SUCH_PATH")
    return place


async def _fetch(session: Session, one: Entry, place: Path | None, *, overwrite: bool) -> None:
    """Copy a file, or a directory with what is in it; report what fails, and go on."""
    with session.trying(one.shown):
        if place is None:
            await _print(await Reader.open(session.tree.namenodes, file_only(one)))
            return
        target = _inside(place, one)
        if not one.is_directory:
            reader = await Reader.open(session.tree.namenodes, one.path)
            with (
                new_file(target, reader.length, overwrite=overwrite) as write,
                progress(one.shown, reader.length) as add,
            ):
                async with aclosing(reader.read()) as parts:
                    async for part in parts:
                        write(part)
                        add(len(part))
            session.did(one.path, to=str(target), bytes=reader.length)
            return
        async for below in session.tree.entries(one):
            await _fetch(session, below, target, overwrite=overwrite)


def _inside(place: Path, one: Entry) -> Path:
    """Return where something comes to lie; a directory is made there."""
    target = place / posixpath.basename(one.path) if place.is_dir() else place
    if one.is_directory:
        with local(target):
            target.mkdir(exist_ok=True)
    return target


@contextmanager
def new_file(target: Path, length: int, *, overwrite: bool) -> Iterator[Callable[[bytes], None]]:
    """Yield what writes to a file, which gets its name when the block ends with all bytes in it.

    Raises Unfit where something is there, and Failed where it cannot be written.
    """
    if target.is_dir() or (target.exists() and not overwrite):
        raise Unfit(f"{target} is there already", "PATH_EXISTS", "-f replaces a file")
    partial = target.with_name(target.name + PARTIAL)

    def write(data: bytes) -> None:
        with local(partial):
            out.write(data)

    try:
        with local(partial):
            out = partial.open("wb")
        with out:
            yield write
            with local(partial):
                out.flush()
            _ensure(out.tell() == length, f"not all of {length} bytes came; the copy was removed")
        with local(target):
            partial.replace(target)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def _ensure(well: bool, otherwise: str) -> None:  # noqa: FBT001 - what must be so
    if not well:
        raise Failed(otherwise)


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="SOURCE... [TARGET]",
                shell_complete=first_word(None, remote_paths))  # fmt: skip
@OVERWRITE
@about_files("put")
async def put(session: Session, *, words: Sequence[str], overwrite: bool) -> None:
    """Copy SOURCEs of this machine (files, folders, - for standard input) to TARGET in HDFS.

    A file has its name when all of it is written. Until then it has ._COPYING_ behind it, and is
    removed if that fails: pg_dump db | nnha fs put - /backup/db.sql
    """
    sources, target = (words[:-1], words[-1]) if len(words) > 1 else (words, ".")
    with session.trying(target):
        into, inside = await destination(session, target, several=len(sources) > 1)
        for one in sources:
            if one == "-":
                if inside:
                    raise Unfit(f"what comes from - needs a name, and {into} is a directory")
                await _store(session, None, into, overwrite=overwrite)
                continue
            place = Path(one.removeprefix("file://"))
            path = child(into, _name_of(place)) if inside else into
            await _store(session, place, path, overwrite=overwrite)


def _name_of(place: Path) -> str:
    return place.resolve().name if place.name in ("", "..") else place.name


async def _store(session: Session, place: Path | None, path: str, *, overwrite: bool) -> None:
    """Copy a file, a folder with what is in it, or standard input; report what fails, and go on."""
    with session.trying(str(place or "-")), opened(place) as (source, size, names):
        there = await session.tree.status(session.tree.only(quoted(path)))
        if names is None:
            if there is not None and (there.is_directory or not overwrite):
                raise Unfit(f"{path} is there already", "PATH_EXISTS", "-f replaces a file")
            with progress(path, size) as add:
                done = await store_file(session, source, size, path, add, overwrite=overwrite)
            session.did(path, source=str(place or "-"), bytes=done)
            return
        if there is None:
            await session.tree.make_directory(path, 0o777, umask(session), parents=False)
        elif not there.is_directory:
            raise Unfit(f"{path} is there, and no directory", "PATH_EXISTS")
        for name in names:
            below = place / name if place else None
            await _store(session, below, child(path, name), overwrite=overwrite)


@contextmanager
def opened(place: Path | None) -> Iterator[tuple[int, int | None, Sequence[str] | None]]:
    """Yield a descriptor, the size unless it is a pipe, and the names in it if it is a folder."""
    if place is not None and not place.exists():
        raise Unfit("there is no such file on this machine", "NO_SUCH_PATH")
    with local(place or Path("-")):
        descriptor = os.dup(0) if place is None else os.open(place, os.O_RDONLY)
    try:
        found = os.fstat(descriptor)
        size = found.st_size if stat.S_ISREG(found.st_mode) else None
        names = (
            sorted(one.name for one in os.scandir(descriptor))
            if stat.S_ISDIR(found.st_mode)
            else None
        )
        yield descriptor, size, names
    finally:
        os.close(descriptor)


async def store_file(
    session: Session, source: int, size: int | None, path: str, add: Callable[[int], None], *,
    overwrite: bool,
) -> int:  # fmt: skip
    """Write a file under a name of its own, and rename it; return how many bytes it has.

    Without ``overwrite`` a file that has come to ``path`` since stays.
    """
    partial, done, writer = path + PARTIAL, 0, None
    mask = umask(session)
    try:
        writer = await Writer.create(
            session.tree.namenodes, partial, overwrite=True, create_parent=False,
            permission=0o666 & ~mask, unmasked=0o666,
        )  # fmt: skip
        while data := await read(source, waits=size is None):
            await writer.write(data)
            add(len(data))
            done += len(data)
        await writer.close()
        await session.tree.rename(partial, path, over=overwrite)
    except BaseException as failure:
        await clean_up(writer, partial, failure)
        raise
    return done


async def clean_up(writer: Writer | None, partial: str, failure: BaseException) -> None:
    """Remove a copy that is not complete; where that is not possible, say that it may be left."""
    left = f"{partial} may be left; nnha fs rm --skip-trash removes it"
    known = isinstance(failure, Exception) and not isinstance(failure, OutcomeUnknown)
    try:
        if writer is not None:
            async with asyncio.timeout(CLEAN_SECONDS):
                await writer.discard()
        elif not known:  # it was being created
            click.echo(f"nnha fs put: {left}", err=True)
    except (FilesError, TimeoutError) as problem:
        if known:
            raise Failed(f"{failure}. {left}") from problem
        click.echo(f"nnha fs put: {left}", err=True)


async def read(source: int, *, waits: bool) -> bytes:
    """Return what comes next, none at the end; for a pipe wait while the lease is renewed."""
    if waits:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        with suppress(PermissionError):  # it never waits, as /dev/zero
            loop.add_reader(source, _settle, ready)
            try:
                await ready
            finally:
                loop.remove_reader(source)
    with local(Path(f"/dev/fd/{source}")):
        return os.read(source, CHUNK_BYTES)


def _settle(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
