"""``nnha fs mkdir``, ``mv``, ``chmod`` and ``chown``."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import click

from files.cli import modes
from files.cli.completion import remote_paths
from files.cli.failures import Code, Unfit
from files.cli.forms import Entry
from files.cli.session import Session, about_files
from files.cli.spelling import child, name_of, parent_of
from files.cli.tree import NoSuchPath
from ha.conf.keys.files import UMASK
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2 as types

DIRECTORY_RIGHTS: Final = 0o777
_OWNER: Final = re.compile(r"([-_./@a-zA-Z0-9]+)?(?::([-_./@a-zA-Z0-9]*))?")


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", shell_complete=remote_paths)
@click.option("-p", "parents", is_flag=True, help="Parents, too; those that are there are fine.")
@about_files("mkdir", changes=True)
async def mkdir(session: Session, *, paths: Sequence[str], parents: bool) -> None:
    """Make directories.

    \b
    nnha fs mkdir -p /data/2026/11
    """
    for text in paths:
        with session.trying(text):
            path = session.tree.only(text)
            there = await session.tree.status(path, text)
            if there is not None and not there.is_directory:
                raise Unfit("a file of this name is there", Code.PATH_EXISTS)
            if there is not None and not parents:
                raise Unfit("it is there already", Code.PATH_EXISTS, "with -p that is fine")
            if there is None:
                await make_directory(session, path, text, parents=parents)
            session.result({"path": path, "made": there is None})


async def make_directory(session: Session, path: str, shown: str, *, parents: bool) -> None:
    """Make one directory, with the rights that the umask leaves.

    Raises:
        NoSuchPath: its parent is not there, and is not to be made.
    """
    above = parent_of(path)
    if not parents and await session.tree.status(above, above) is None:
        raise NoSuchPath(shown, above)
    mask = modes.umask_of(session.place.configuration.get(UMASK))
    await session.tree.make_directory(path, DIRECTORY_RIGHTS, mask=mask, parents=parents)


@click.command()
@click.argument(
    "sources", nargs=-1, required=True, metavar="SOURCE...", shell_complete=remote_paths
)
@click.argument("target", shell_complete=remote_paths)
@about_files("mv", changes=True)
async def mv(session: Session, *, sources: Sequence[str], target: str) -> None:
    """Rename SOURCE to TARGET, or move SOURCEs into TARGET where it is a directory.

    What is at TARGET already stays: then nothing is moved.

    \b
    nnha fs mv /data/a /data/b
    nnha fs mv '/incoming/*.csv' /data
    """
    found = await session.named(sources)
    with session.trying(target):
        into, there = await destination(session, target, several=len(found) > 1)
        for one in found:
            with session.trying(one.shown):
                path = child(into, name_of(one.path)) if there is not None else into
                if path == one.path:
                    raise Unfit(f"source and target are both {path}", Code.UNFIT_PATH)
                if path.startswith(f"{one.path}/"):
                    raise Unfit(f"{path} is below it", Code.UNFIT_PATH)
                await session.tree.rename(one.path, path)
                session.result({"path": one.path, "to": path})


async def destination(session: Session, target: str, *, several: bool) -> tuple[str, Entry | None]:
    """Return where something is to be put, and the directory if one is there.

    Raises:
        Unfit: it is no directory, and several things are to be put there.
        NoSuchPath: the directory that it would be in is not there.
    """
    try:
        found = await session.tree.expanded(target)
    except NoSuchPath:
        found = []
    if len(found) > 1:
        raise Unfit(f"the target matches {len(found)} paths", Code.UNFIT_PATH, "name one")
    if found and found[0].is_directory:
        return found[0].path, found[0]
    if several or (found and target.endswith("/")):
        text = "the target is no directory" if found else "the target is not there"
        raise Unfit(f"{text}, and only a directory takes several", Code.UNFIT_PATH)
    if found:
        return found[0].path, None
    path = session.tree.only(target)
    above = parent_of(path)
    if await session.tree.status(above, above) is None:
        raise NoSuchPath(target, above)
    return path, None


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("mode")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", shell_complete=remote_paths)
@click.option("-R", "deep", is_flag=True, help="All that is below, too.")
@about_files("chmod", changes=True)
async def chmod(session: Session, *, mode: str, paths: Sequence[str], deep: bool) -> None:
    """Change the permissions of PATHs to MODE: 755, 1777, or clauses as u=rwx,g+w,o-x,+t.

    Letters are r, w, x, X (x where something can be run already) and t; no umask is applied.

    \b
    nnha fs chmod 750 /data
    nnha fs chmod -R g+rX,o= /data
    """
    with session.trying(mode):
        wanted = modes.parsed(mode)

        async def change(one: Entry) -> dict[str, object]:
            now = modes.applied(wanted, one.permission, directory=one.is_directory)
            if now != one.permission:
                await session.tree.namenodes.call(
                    "setPermission",
                    calls.SetPermissionRequestProto(
                        src=one.path, permission=types.FsPermissionProto(perm=now)
                    ),
                    calls.SetPermissionResponseProto,
                )
            return {"path": one.path, "permission": f"{now:04o}"}

        await _on_each(session, paths, change, deep=deep)


@click.command()
@click.argument("owner", metavar="[OWNER][:GROUP]")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", shell_complete=remote_paths)
@click.option("-R", "deep", is_flag=True, help="All that is below, too.")
@about_files("chown", changes=True)
async def chown(session: Session, *, owner: str, paths: Sequence[str], deep: bool) -> None:
    """Change owner and group of PATHs; the superuser may, and an owner to a group of its own.

    \b
    nnha fs chown -R alice:analysts /user/alice
    nnha fs chown :analysts /data
    """
    with session.trying(owner):
        read = _OWNER.fullmatch(owner.strip())
        user, group = (read[1] or "", read[2] or "") if read else ("", "")
        if not user and not group:
            raise Unfit("this is not OWNER, OWNER:GROUP or :GROUP", Code.BAD_PATH)

        async def change(one: Entry) -> dict[str, object]:
            request = calls.SetOwnerRequestProto(src=one.path)
            if user and user != one.owner:
                request.username = user
            if group and group != one.group:
                request.groupname = group
            if request.HasField("username") or request.HasField("groupname"):
                await session.tree.namenodes.call("setOwner", request, calls.SetOwnerResponseProto)
            return {"path": one.path, "owner": user or one.owner, "group": group or one.group}

        await _on_each(session, paths, change, deep=deep)


async def _on_each(
    session: Session,
    paths: Sequence[str],
    change: Callable[[Entry], Awaitable[dict[str, object]]],
    *,
    deep: bool,
) -> None:
    """Change what the paths stand for, and with ``deep`` what is below, each directory first."""
    for top in await session.named(paths):
        with session.trying(top.shown):
            async for one in session.tree.below(top, None if deep else 0):
                with session.trying(one.shown):
                    session.result(await change(one))
