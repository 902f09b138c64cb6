"""``nnha fs mkdir``, ``mv``, ``rm``, ``chmod`` and ``chown``."""

import posixpath
import re
import time
from collections.abc import Awaitable, Callable, Sequence

import click

from files.cli import modes
from files.cli.completion import remote_paths
from files.cli.forms import Entry
from files.cli.session import Session, about_files
from files.cli.spelling import NoSuchPath, Unfit, child
from files.errors import AlreadyExists, NotFound, Refused
from ha.conf.keys.files import TRASH_INTERVAL, UMASK
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2 as types

PATHS = click.argument(
    "paths", nargs=-1, required=True, metavar="PATH...", shell_complete=remote_paths
)
DEEP = click.option("-R", "deep", is_flag=True, help="All that is below, too.")
_OWNER = re.compile(r"([-_./@a-zA-Z0-9]+)?(?::([-_./@a-zA-Z0-9]*))?")


def umask(session: Session) -> int:
    """Return fs.permissions.umask-mode; raise Unfit where it is none."""
    return modes.umask_of(session.place.configuration.get(UMASK))


@click.command()
@PATHS
@click.option("-p", "parents", is_flag=True, help="Parents, too; what is there is fine.")
@about_files("mkdir")
async def mkdir(session: Session, *, paths: Sequence[str], parents: bool) -> None:
    """Make directories: nnha fs mkdir -p /data/2026/11"""
    for text in paths:
        with session.trying(text):
            path = session.tree.only(text)
            there = await session.tree.status(path)
            if there is not None and not (parents and there.is_directory):
                raise Unfit(f"a {there.type} of this name is there", "PATH_EXISTS")
            if there is None and not parents:
                await ensure_parent(session, path)
            await session.tree.make_directory(path, 0o777, umask(session), parents=parents)
            session.did(path, changed=there is None, made=there is None)


async def ensure_parent(session: Session, path: str) -> None:
    """Raise NoSuchPath where the directory of a path is not there."""
    above = posixpath.dirname(path)
    if await session.tree.status(above) is None:
        raise NoSuchPath(f": {above} is not there", "nnha fs mkdir -p")


async def destination(session: Session, target: str, *, several: bool) -> tuple[str, bool]:
    """Return where something is to be put, and whether that is a directory which is there.

    Raises Unfit where it matches several paths, or where only a directory would do.
    """
    try:
        found = await session.tree.expanded(target)
    except NoSuchPath:
        path = session.tree.only(target)
        await ensure_parent(session, path)
        found = [Entry(path, target, "file")]
    if len(found) > 1:
        raise Unfit(f"the target matches {len(found)} paths; name one")
    if not found[0].is_directory and (several or target.endswith("/")):
        raise Unfit("the target is no directory, and only one takes several")
    return found[0].path, found[0].is_directory


@click.command()
@click.argument("sources", nargs=-1, required=True, shell_complete=remote_paths)
@click.argument("target", shell_complete=remote_paths)
@about_files("mv")
async def mv(session: Session, *, sources: Sequence[str], target: str) -> None:
    """Rename SOURCES to TARGET, or move them into the directory TARGET. Nothing is replaced.

    \b
    nnha fs mv '/incoming/*.csv' /data
    """
    found = await session.named(sources)
    with session.trying(target):
        into, inside = await destination(session, target, several=len(found) > 1)
        for one in found:
            with session.trying(one.shown):
                path = child(into, posixpath.basename(one.path)) if inside else into
                if f"{path}/".startswith(f"{one.path}/"):
                    raise Unfit(f"{path} is the same, or below it")
                await session.tree.rename(one.path, path)
                session.did(one.path, to=path)


@click.command()
@PATHS
@click.option("-r", "-R", "deep", is_flag=True, help="Directories, too.")
@click.option("-f", "forgiving", is_flag=True, help="What is not there is fine.")
@click.option("--skip-trash", "-skipTrash", "at_once", is_flag=True, help="Delete for good.")
@about_files("rm")
async def rm(
    session: Session, *, paths: Sequence[str], deep: bool, forgiving: bool, at_once: bool
) -> None:
    """Move files to /user/NAME/.Trash/Current, or delete them.

    There is a trash where fs.trash.interval is above 0, at the NameNode or here. What is in it
    already is deleted, and hdfs dfs -expunge empties it: nnha fs rm -r --skip-trash /tmp/old
    """
    answer = await session.tree.look(calls.GetServerDefaultsResponseProto)
    minutes = answer.serverDefaults.trashInterval or session.place.configuration.get(TRASH_INTERVAL)
    root = f"/user/{session.tree.user}/.Trash"
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
                    if one.is_directory and not deep:
                        raise Unfit("it is a directory", hint="nnha fs rm -r")
                    if minutes and not at_once and not f"{one.path}/".startswith(f"{root}/"):
                        await _to_trash(session, one, root)
                    else:
                        await delete(session, one, deep=deep)


async def delete(session: Session, one: Entry, *, deep: bool) -> None:
    """Delete for good."""
    ask = session.tree.namenodes.ask
    if not (await ask(calls.DeleteResponseProto, src=one.path, recursive=deep)).result:
        raise Unfit("nothing was deleted: it is the root, or gone")
    session.did(one.path, f"Deleted {one.shown}", trash=None)


async def _to_trash(session: Session, one: Entry, root: str) -> None:
    """Move to the trash, under a name with the time where its own is taken there."""
    tree, skip = session.tree, "nnha fs rm --skip-trash deletes it for good"
    if f"{root}/".startswith(one.path.rstrip("/") + "/"):
        raise Unfit(f"it contains the trash {root}", hint=skip)
    target = f"{root}/Current{one.path}"
    for left in (1, 0):  # an emptier may rename Current between the two calls
        try:
            await tree.make_directory(posixpath.dirname(target), 0o700, 0, parents=True)
            if await tree.status(target) is not None:
                target += str(time.time_ns() // 1_000_000)
            await tree.rename(one.path, target, trash=True)
        except (NotFound, AlreadyExists) as refused:
            if not left:
                raise Unfit(f"it cannot be moved to the trash: {refused}", hint=skip) from refused
        except Refused as refused:
            raise Unfit(f"it cannot be moved to the trash: {refused}", hint=skip) from refused
        else:
            break
    session.did(one.path, f"Moved {one.shown} to {target}", trash=target)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("mode")
@PATHS
@DEEP
@about_files("chmod")
async def chmod(session: Session, *, mode: str, paths: Sequence[str], deep: bool) -> None:
    """Change the rights of PATHs to MODE: 755, 1777, or clauses as u=rwx,g+w,o-x,+t.

    X is x where something can be run already. No umask is applied: nnha fs chmod -R g+rX /data
    """

    async def change(one: Entry) -> None:
        now = modes.applied(mode, one.permission, directory=one.is_directory)
        if now != one.permission:
            rights = types.FsPermissionProto(perm=now)
            ask = session.tree.namenodes.ask
            await ask(calls.SetPermissionResponseProto, src=one.path, permission=rights)
        session.did(one.path, changed=now != one.permission, permission=f"{now:04o}")

    modes.applied(mode, 0, directory=False)
    await _on_each(session, paths, change, deep=deep)


@click.command()
@click.argument("owner", metavar="[OWNER][:GROUP]")
@PATHS
@DEEP
@about_files("chown")
async def chown(session: Session, *, owner: str, paths: Sequence[str], deep: bool) -> None:
    """Change owner and group of PATHs: nnha fs chown -R alice:analysts /user/alice"""
    read = _OWNER.fullmatch(owner.strip())
    if read is None or not (read[1] or read[2]):
        raise Unfit(f"{owner!r} is not OWNER, OWNER:GROUP or :GROUP", "BAD_PATH")

    async def change(one: Entry) -> None:
        user, group = read[1] or one.owner, read[2] or one.group
        if changed := (user, group) != (one.owner, one.group):
            await session.tree.namenodes.ask(
                calls.SetOwnerResponseProto,
                src=one.path,
                username=user if user != one.owner else None,
                groupname=group if group != one.group else None,
            )
        session.did(one.path, changed=changed, owner=user, group=group)

    await _on_each(session, paths, change, deep=deep)


async def _on_each(
    session: Session,
    paths: Sequence[str],
    change: Callable[[Entry], Awaitable[None]],
    *,
    deep: bool,
) -> None:
    """Change what the paths stand for, and with ``deep`` what is below, directories first."""
    for top in await session.named(paths):
        with session.trying(top.shown):
            async for one in session.below(top, None if deep else 0):
                with session.trying(one.shown):
                    await change(one)
