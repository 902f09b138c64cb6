"""The directory tree as the commands see it: states, listings, and what a pattern stands for."""

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from files.cli.forms import Entry
from files.cli.globs import alternatives, parts_of, pattern_of, unquoted
from files.cli.modes import ALL
from files.cli.spelling import BadPath, Spelling, child, name_of, spelt
from files.namenodes import Namenodes
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2 as types

_KINDS: Final = {
    types.HdfsFileStatusProto.IS_DIR: "directory",
    types.HdfsFileStatusProto.IS_FILE: "file",
    types.HdfsFileStatusProto.IS_SYMLINK: "symlink",
}

_ACL_BIT: Final = 12
"""Where Hadoop's older servers say in a permission that there is an ACL."""


class NoSuchPath(Exception):
    """There is no file or directory of this name, or none that matches."""

    def __init__(self, path: str, parent: str | None = None) -> None:
        super().__init__(path, parent)
        self.path = path
        self.parent = parent


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a listing; ``end`` is the last name's bytes, after which the next part begins."""

    entries: Sequence[Entry]
    end: bytes
    last: bool


@dataclass(frozen=True, slots=True)
class Tree:
    """A nameservice's tree, as ``user`` sees it."""

    namenodes: Namenodes
    user: str
    nameservice: str

    def spelt(self, text: str) -> Spelling:
        """Return what a path on the command line means; raise BadPath where it means nothing."""
        return spelt(text, self.user, self.nameservice)

    def only(self, text: str) -> str:
        """Return the absolute path of something that may not be there yet.

        Raises:
            BadPath: it is no path here, or a pattern.
        """
        spelling = self.spelt(text)
        parts = parts_of(spelling.absolute(spelling.path))
        if any(map(pattern_of, parts)):
            raise BadPath("this is a pattern that matches nothing. Write \\* for a * in a name.")
        return "/" + "/".join(map(unquoted, parts))

    async def status(self, path: str, shown: str) -> Entry | None:
        """Return what an absolute path is; None if it is nothing."""
        answer = await self.namenodes.call(
            "getFileInfo",
            calls.GetFileInfoRequestProto(src=path),
            calls.GetFileInfoResponseProto,
        )
        return _entry(answer.fs, path, shown) if answer.HasField("fs") else None

    async def make_directory(self, path: str, rights: int, *, mask: int, parents: bool) -> None:
        """Make a directory with the rights that a umask leaves of these."""
        await self.namenodes.call(
            "mkdirs",
            calls.MkdirsRequestProto(
                src=path,
                masked=types.FsPermissionProto(perm=rights & ~mask),
                unmasked=types.FsPermissionProto(perm=rights),
                createParent=parents,
            ),
            calls.MkdirsResponseProto,
        )

    async def rename(
        self, path: str, to: str, *, overwrite: bool = False, to_trash: bool = False
    ) -> None:
        """Rename; refuse where something is at the new path, or replace the file that is there."""
        await self.namenodes.call(
            "rename2",
            calls.Rename2RequestProto(
                src=path, dst=to, overwriteDest=overwrite, moveToTrash=to_trash
            ),
            calls.Rename2ResponseProto,
        )

    async def delete(self, path: str, *, deep: bool) -> bool:
        """Delete; return whether there was anything that can be deleted."""
        answer = await self.namenodes.call(
            "delete",
            calls.DeleteRequestProto(src=path, recursive=deep),
            calls.DeleteResponseProto,
        )
        return answer.result

    async def entries(self, directory: Entry) -> AsyncIterator[Entry]:
        """Yield what is in a directory, in the order of its names' bytes; for a file, itself.

        Raises:
            NoSuchPath: it is not there any more.
        """
        after = b""
        while True:
            page = await self.page(directory.path, directory.shown, after)
            for one in page.entries:
                yield one
            if page.last:
                return
            after = page.end

    async def page(self, path: str, shown: str, after: bytes) -> "Page":
        """Return the entries of a directory whose names come after this one, or some of them.

        Of a file it is the file itself.

        Raises:
            NoSuchPath: it is not there.
        """
        answer = await self.namenodes.call(
            "getListing",
            calls.GetListingRequestProto(src=path, startAfter=after, needLocation=False),
            calls.GetListingResponseProto,
        )
        if not answer.HasField("dirList"):
            raise NoSuchPath(shown)
        found = answer.dirList.partialListing
        entries = []
        for one in found:
            name = _text(one.path)
            both = (child(path, name), child(shown, name)) if name else (path, shown)
            entries.append(_entry(one, *both))
        end = found[-1].path if found else b""
        return Page(entries, end, last=not found or not answer.dirList.remainingEntries)

    async def below(self, top: Entry, most_levels: int | None = None) -> AsyncIterator[Entry]:
        """Yield an entry, and everything below it, each directory before what is in it."""
        yield top
        if not top.is_directory or most_levels == 0:
            return
        # By a stack of open listings, not by recursion: each level of generators would hand on
        # each entry.
        open_: list[AsyncIterator[Entry]] = [self.entries(top)]
        while open_:
            async for one in open_[-1]:
                yield one
                if one.is_directory and (most_levels is None or len(open_) < most_levels):
                    open_.append(self.entries(one))
                    break
            else:
                open_.pop()

    async def expanded(self, text: str) -> Sequence[Entry]:
        """Return what a path or pattern stands for.

        Raises:
            BadPath: it is no path here.
            NoSuchPath: nothing is there.
        """
        spelling = self.spelt(text)
        found: list[Entry] = []
        for one in alternatives(spelling.path):
            found += await self._matching(spelling, spelling.absolute(one))
        if not found:
            raise NoSuchPath(text)
        return found

    async def _matching(self, spelling: Spelling, pattern: str) -> Sequence[Entry]:
        parts = parts_of(pattern)
        patterns = [pattern_of(part) for part in parts]
        if not any(patterns):
            path = "/" + "/".join(map(unquoted, parts))
            whole = await self.status(path, spelling.shown(path))
            return [] if whole is None else [whole]
        found = [Entry("/", spelling.shown("/"), "directory")]
        for part, pattern_here in zip(parts, patterns, strict=True):
            inside: list[Entry] = []
            for directory in found:
                if not directory.is_directory:
                    continue
                if pattern_here is not None:
                    inside += await self._matching_names(spelling, directory, pattern_here)
                    continue
                path = child(directory.path, unquoted(part))
                one = await self.status(path, spelling.shown(path))
                inside += [] if one is None else [one]
            found = inside
        return found

    async def _matching_names(
        self, spelling: Spelling, directory: Entry, pattern: re.Pattern[str]
    ) -> Sequence[Entry]:
        return [
            replace(one, shown=spelling.shown(one.path))
            async for one in self.entries(directory)
            if pattern.fullmatch(name_of(one.path))
        ]


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")


def _entry(one: types.HdfsFileStatusProto, path: str, shown: str) -> Entry:
    flags = one.flags | one.permission.perm >> _ACL_BIT
    return Entry(
        path,
        shown,
        _KINDS[one.fileType],
        one.length,
        one.permission.perm & ALL,
        one.owner,
        one.group,
        one.modification_time,
        one.access_time,
        one.block_replication,
        one.blocksize,
        bool(flags & types.HdfsFileStatusProto.HAS_ACL),
        _text(one.symlink) if one.HasField("symlink") else None,
    )
