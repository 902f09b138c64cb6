"""``nnha fs rm``: into the user's trash, as Hadoop's shell, or away."""

import time
from collections.abc import Sequence
from typing import Final

import click

from files.cli.completion import remote_paths
from files.cli.failures import Code, Unfit
from files.cli.forms import Entry
from files.cli.session import Session, about_files
from files.cli.spelling import name_of, parent_of
from files.cli.tree import NoSuchPath
from files.errors import AlreadyExists, NotFound, Refused
from ha.conf.keys.files import TRASH_INTERVAL
from ha.rpc.java_names import PARENT_NOT_DIRECTORY
from hadoop.proto import client_namenode_pb2 as calls

TRASH_RIGHTS: Final = 0o700
TRIES: Final = 3
"""Between the making of the directory and the move, an emptier may rename it."""


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", shell_complete=remote_paths)
@click.option("-r", "-R", "deep", is_flag=True, help="Directories, too.")
@click.option("-f", "forgiving", is_flag=True, help="What is not there is fine.")
@click.option("--skip-trash", "-skipTrash", "at_once", is_flag=True, help="Delete for good.")
@about_files("rm", changes=True)
async def rm(
    session: Session, *, paths: Sequence[str], deep: bool, forgiving: bool, at_once: bool
) -> None:
    """Move files to your trash, or delete them where there is none.

    The trash is /user/NAME/.Trash/Current, where fs.trash.interval is more than 0, at the NameNode
    or here. What is in it already is deleted. hdfs dfs -expunge empties it.

    \b
    nnha fs rm '/tmp/part-*'
    nnha fs rm -r --skip-trash /tmp/old
    """
    trash = False if at_once else await _has_trash(session)
    for text in paths:
        with session.trying(text):
            try:
                found = await session.tree.expanded(text)
            except NoSuchPath:
                if not forgiving:
                    raise
                continue
            for one in found:
                with session.trying(one.shown):
                    await _remove(session, one, deep=deep, trash=trash)


async def _has_trash(session: Session) -> bool:
    answer = await session.tree.namenodes.call(
        "getServerDefaults",
        calls.GetServerDefaultsRequestProto(),
        calls.GetServerDefaultsResponseProto,
    )
    minutes = answer.serverDefaults.trashInterval
    return minutes > 0 or session.place.configuration.get(TRASH_INTERVAL) > 0


async def _remove(session: Session, one: Entry, *, deep: bool, trash: bool) -> None:
    if one.is_directory and not deep:
        raise Unfit("it is a directory", Code.UNFIT_PATH, "nnha fs rm -r")
    root = f"/user/{session.tree.user}/.Trash"
    if trash and one.path != root and not one.path.startswith(f"{root}/"):
        moved = await _into_trash(session, one, root)
        session.result({"path": one.path, "trash": moved}, f"Moved {one.shown} to {moved}")
        return
    if not await session.tree.delete(one.path, deep=deep):
        raise Unfit("the NameNode deleted nothing: it is the root, or gone", Code.UNFIT_PATH)
    session.result({"path": one.path, "trash": None}, f"Deleted {one.shown}")


async def _into_trash(session: Session, one: Entry, root: str) -> str:
    """Move something to the trash, and return where it is now."""
    if f"{root}/".startswith(one.path.rstrip("/") + "/"):
        raise Unfit(f"it contains the trash {root}", Code.UNFIT_PATH, "rm -r --skip-trash")
    into = f"{root}/Current{parent_of(one.path)}".rstrip("/")
    left = TRIES
    while True:
        left -= 1
        try:
            into = await _directory(session, into)
            target = f"{into}/{name_of(one.path)}"
            while await session.tree.status(target, target) is not None:
                target = f"{into}/{name_of(one.path)}{_now()}"
            await session.tree.rename(one.path, target, to_trash=True)
        except (NotFound, AlreadyExists):
            if not left or await session.tree.status(one.path, one.path) is None:
                raise
        except Refused as refused:
            raise Unfit(
                f"it cannot be moved to the trash {into}: {refused}",
                Code.NAMENODE_REFUSED,
                "nnha fs rm --skip-trash deletes it for good",
            ) from refused
        else:
            return target


async def _directory(session: Session, path: str) -> str:
    """Make a directory of the trash; where a file is in its way, one of another name."""
    try:
        await session.tree.make_directory(path, TRASH_RIGHTS, mask=0, parents=True)
    except Refused as refused:
        if not isinstance(refused, AlreadyExists) and refused.java_class != PARENT_NOT_DIRECTORY:
            raise
        taken = path
        while (there := await session.tree.status(taken, taken)) is None:
            taken = parent_of(taken)
        if there.is_directory:
            raise
        return await _directory(session, f"{taken}{_now()}{path[len(taken) :]}")
    return path


def _now() -> int:
    return time.time_ns() // 1_000_000
