"""``nnha fs get`` and ``put``: between this machine and HDFS."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final

import click

from files.cli import globs, local, modes
from files.cli.changes import DIRECTORY_RIGHTS, destination
from files.cli.completion import local_first, remote_first
from files.cli.failures import Code, HalfDone, Unfit
from files.cli.forms import Entry
from files.cli.progress import progress_of
from files.cli.session import Session, about_files
from files.cli.spelling import child, name_of
from files.errors import FilesError, OutcomeUnknown
from files.read import Reader
from files.write import Writer
from ha.conf.keys.files import UMASK

CLEAN_SECONDS: Final = 10.0
"""How long the removal of a partial copy may take, when the copy has failed."""
FILE_RIGHTS: Final = 0o666


@click.command()
@click.argument(
    "words", nargs=-1, required=True, metavar="SOURCE... [TARGET]", shell_complete=remote_first
)
@click.option("-f", "overwrite", is_flag=True, help="Replace files that are there.")
@about_files("get", changes=True)
async def get(session: Session, *, words: Sequence[str], overwrite: bool) -> None:
    """Copy SOURCEs to TARGET on this machine: a file, a folder, or - for standard output.

    Directories are copied with all that is below. A file appears under its name when all of it is
    there and right; until then it has ._COPYING_ behind its name, and is removed if that fails.

    \b
    nnha fs get /data/a .
    nnha fs get '/logs/*' /tmp/logs
    nnha fs get /data/a - | sha256sum
    """
    sources, target = (words[:-1], words[-1]) if len(words) > 1 else (words, ".")
    found = await session.named(sources)
    if target == local.STANDARD:
        for one in found:
            with session.trying(one.shown):
                await _to_output(session, one)
        return
    with session.trying(target):
        place = local.folder_or_name(target, several=len(found) > 1)
        for one in found:
            await _fetch(session, one, local.inside(place, name_of(one.path)), overwrite=overwrite)


async def _fetch(session: Session, one: Entry, target: Path, *, overwrite: bool) -> None:
    """Copy a file, or a directory with what is in it; report what fails, and go on."""
    with session.trying(one.shown):
        if not one.is_directory:
            await _fetch_file(session, one, target, overwrite=overwrite)
            return
        local.make_folder(target)
        async for below in session.tree.entries(one):
            await _fetch(session, below, target / name_of(below.path), overwrite=overwrite)


async def _fetch_file(session: Session, one: Entry, target: Path, *, overwrite: bool) -> None:
    with local.new_file(target, overwrite=overwrite) as write:
        reader = await Reader.open(session.tree.namenodes, one.path)
        with progress_of(one.shown, reader.length) as progress:
            async with aclosing(reader.read()) as parts:
                async for part in parts:
                    write(part)
                    progress.add(len(part))
        _ensure_whole(progress.done, reader.length)
    session.result({"path": one.path, "to": str(target), "bytes": progress.done})


def _ensure_whole(copied: int, length: int) -> None:
    if copied != length:
        raise HalfDone(f"{copied} bytes came of {length}; the copy was removed")


async def _to_output(session: Session, one: Entry) -> None:
    if one.is_directory:
        raise Unfit("it is a directory, and - takes files", Code.UNFIT_PATH)
    reader = await Reader.open(session.tree.namenodes, one.path)
    async with aclosing(reader.read()) as parts:
        async for part in parts:
            sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()


@click.command()
@click.argument(
    "words", nargs=-1, required=True, metavar="SOURCE... [TARGET]", shell_complete=local_first
)
@click.option("-f", "overwrite", is_flag=True, help="Replace files that are there.")
@about_files("put", changes=True)
async def put(session: Session, *, words: Sequence[str], overwrite: bool) -> None:
    """Copy SOURCEs of this machine (files, folders, - for standard input) to TARGET in HDFS.

    TARGET is a directory that is there, or a new name; your home without one. A file appears under
    its name when all of it is written; until then it has ._COPYING_ behind its name, and is removed
    if that fails.

    \b
    nnha fs put a.csv b.csv /data
    nnha fs put -f folder /data/folder
    pg_dump db | nnha fs put - /backup/db.sql
    """
    sources, target = (words[:-1], words[-1]) if len(words) > 1 else (words, ".")
    with session.trying(target):
        into, there = await destination(session, target, several=len(sources) > 1)
        for one in sources:
            with session.trying(one):
                if there is not None and one == local.STANDARD:
                    raise Unfit("what comes from - needs a name", Code.UNFIT_PATH, f"{into}/NAME")
                place = local.place_of(one)
                path = into if there is None else child(into, place.name)
                await _store(session, place, path, overwrite=overwrite)


async def _store(session: Session, place: Path, path: str, *, overwrite: bool) -> None:
    """Copy a file, or a folder with what is in it; report what fails, and go on."""
    with session.trying(str(place)):
        names = None if str(place) == local.STANDARD else local.names_in(place)
        there = await session.tree.status(session.tree.only(globs.quoted(path)), path)
        if names is None:
            if there is not None and (there.is_directory or not overwrite):
                raise Unfit(f"{path} is there already", Code.PATH_EXISTS, "-f replaces a file")
            await _store_file(session, str(place), path, overwrite=overwrite)
            return
        if there is None:
            mask = modes.umask_of(session.place.configuration.get(UMASK))
            await session.tree.make_directory(path, DIRECTORY_RIGHTS, mask=mask, parents=False)
        elif not there.is_directory:
            raise Unfit(f"{path} is there, and no directory", Code.PATH_EXISTS)
        for name in names:
            await _store(session, place / name, child(path, name), overwrite=overwrite)


async def _store_file(session: Session, name: str, path: str, *, overwrite: bool) -> None:
    rights = FILE_RIGHTS & ~modes.umask_of(session.place.configuration.get(UMASK))
    partial = path + local.PARTIAL
    with local.source(name) as source, progress_of(path, source.size) as progress:
        writer = await Writer.create(
            session.tree.namenodes,
            partial,
            overwrite=True,
            create_parent=False,
            permission=rights,
        )
        try:
            while data := await source.read():
                await writer.write(data)
                progress.add(len(data))
            await writer.close()
            await session.tree.rename(partial, path, overwrite=overwrite)
        except BaseException as failure:
            await _clean_up(writer, partial, failure)
            raise
    session.result({"path": path, "from": name, "bytes": progress.done})


async def _clean_up(writer: Writer, partial: str, failure: BaseException) -> None:
    """Remove a copy that is not complete; where that is not possible, say that it is left."""
    try:
        async with asyncio.timeout(CLEAN_SECONDS):
            await writer.discard()
    except (FilesError, TimeoutError) as problem:
        text = f"{partial} may be left: nnha fs rm --skip-trash '{partial}'"
        if isinstance(failure, Exception) and not isinstance(failure, OutcomeUnknown):
            raise HalfDone(f"{failure}; {text}") from problem
        click.echo(f"nnha fs put: {text}", err=True)
