"""``nnha fs cat``, ``tail`` and ``checksum``: what files contain."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import aclosing
from typing import Final

import click

from files.cli.completion import remote_paths
from files.cli.failures import Code, Unfit
from files.cli.forms import Entry
from files.cli.session import Session, about_files
from files.read import Reader

TAIL_BYTES: Final = 1024
FOLLOW_SECONDS: Final = 1.0


def file_only(one: Entry) -> Entry:
    """Return an entry that is a file; raise Unfit otherwise."""
    if one.is_directory:
        raise Unfit("it is a directory", Code.UNFIT_PATH, "nnha fs ls shows what is in it")
    return one


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", shell_complete=remote_paths)
@about_files("cat", changes=False, formats=("table",))
async def cat(session: Session, *, paths: Sequence[str]) -> None:
    """Print files, one after the other; every byte is checked against its checksum.

    \b
    nnha fs cat /data/a | head
    nnha fs cat '/logs/part-*' > all
    """
    for one in await session.named(paths):
        with session.trying(one.shown):
            reader = await Reader.open(session.tree.namenodes, file_only(one).path)
            await _print(reader, 0)


@click.command()
@click.argument("path", shell_complete=remote_paths)
@click.option("-f", "follow", is_flag=True, help="Go on with what is written, until Ctrl-C.")
@about_files("tail", changes=False, formats=("table",))
async def tail(session: Session, *, path: str, follow: bool) -> None:
    """Print the last kilobyte of a file; with -f also what is appended to it.

    A file that is being written is read as far as its writer has flushed it. A failover does not
    end -f, nor does the writer: another may append.

    \b
    nnha fs tail -f /logs/today
    """
    for one in await session.named([path]):
        with session.trying(one.shown):
            file_only(one)
            reader = await Reader.open(session.tree.namenodes, one.path)
            at = await _print(reader, max(0, reader.length - TAIL_BYTES))
            while follow:
                await asyncio.sleep(FOLLOW_SECONDS)
                reader = await Reader.open(session.tree.namenodes, one.path, offset=at)
                if reader.length < at:
                    click.echo(f"nnha fs tail: {one.shown} was cut, or is another", err=True)
                    at = 0
                at = await _print(reader, at)


async def _print(reader: Reader, at: int) -> int:
    """Write a file to standard output from a byte on; return where it ended."""
    out = sys.stdout.buffer
    async with aclosing(reader.read(at)) as parts:
        async for part in parts:
            out.write(part)
            at += len(part)
    out.flush()
    return at
