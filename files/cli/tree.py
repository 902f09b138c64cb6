"""The directory tree as the commands see it: states, listings, and what a pattern stands for."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, TypeVar

from google.protobuf.message import Message

from files.cli.forms import Entry, in_order
from files.cli.modes import ALL
from files.cli.spelling import (
    NoSuchPath,
    Spelling,
    Unfit,
    alternatives,
    child,
    is_pattern,
    matcher,
    spelt,
    unquoted,
)  # fmt: skip
from files.errors import OutcomeUnknown, Unreachable
from files.namenodes import Namenodes
from ha.record import dataclass, replace
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2 as types

M = TypeVar("M", bound=Message)
_TYPES: Final = {1: "directory", 2: "file", 3: "symlink"}


@dataclass(frozen=True, slots=True)
class Tree:
    """A nameservice's tree, as ``user`` sees it; its calls raise FilesError."""

    namenodes: Namenodes
    user: str
    nameservice: str

    def spelt(self, text: str) -> Spelling:
        """Return what a word on the command line means; raise Unfit where it is no path here."""
        return spelt(text, self.user, self.nameservice)

    def only(self, text: str) -> str:
        """Return the path of what may not be there yet; raise Unfit for a pattern."""
        spelling = self.spelt(text)
        path = spelling.absolute(spelling.pattern)
        if any(map(is_pattern, path.split("/"))):
            raise Unfit("this is a pattern that matches nothing. \\* is a *", "BAD_PATH")
        return unquoted(path)

    async def look(self, response: type[M], **fields: Any) -> M:  # noqa: ANN401 - of a message
        """Ask what changes nothing, as ``Namenodes.ask``; Unreachable where no answer comes."""
        try:
            return await self.namenodes.ask(response, **fields)
        except OutcomeUnknown as silent:
            text = "no NameNode answered in time; nothing was changed by this call"
            raise Unreachable(f"{text}. → nnha status shows why.") from silent

    async def status(self, path: str, shown: str = "") -> Entry | None:
        """Return what an absolute path is; None if it is nothing."""
        answer = await self.look(calls.GetFileInfoResponseProto, src=path)
        return _entry(answer.fs, path, shown or path) if answer.HasField("fs") else None

    async def make_directory(self, path: str, rights: int, mask: int, *, parents: bool) -> None:
        """Make a directory with the rights that a umask leaves of these."""
        await self.namenodes.ask(
            calls.MkdirsResponseProto,
            src=path,
            masked=types.FsPermissionProto(perm=rights & ~mask),
            unmasked=types.FsPermissionProto(perm=rights),
            createParent=parents,
        )

    async def rename(self, path: str, to: str, *, over: bool = False, trash: bool = False) -> None:
        """Rename; refuse where something is at the new path, or replace the file that is there."""
        await self.namenodes.ask(
            calls.Rename2ResponseProto, src=path, dst=to, overwriteDest=over, moveToTrash=trash
        )

    async def page(
        self, path: str, shown: str, after: bytes
    ) -> tuple[Sequence[Entry], bytes | None]:
        """Return what comes after a name in a directory, and the last name if more is to come.

        Of a file it is the file.  Raises NoSuchPath where it is gone.
        """
        answer = await self.look(
            calls.GetListingResponseProto, src=path, startAfter=after, needLocation=False
        )
        if not answer.HasField("dirList"):
            raise NoSuchPath
        found: list[Entry] = []
        for one in answer.dirList.partialListing:
            name = one.path.decode("utf-8", "replace")
            at = (child(path, name), child(shown, name)) if name else (path, shown)
            found.append(_entry(one, *at))
        more = bool(found) and answer.dirList.remainingEntries > 0
        return found, answer.dirList.partialListing[-1].path if more else None

    async def entries(self, directory: Entry) -> AsyncIterator[Entry]:
        """Yield what is in a directory, in the order of its names' bytes."""
        after: bytes | None = b""
        while after is not None:
            found, after = await self.page(directory.path, directory.shown, after)
            for one in found:
                yield one

    async def expanded(self, text: str) -> Sequence[Entry]:
        """Return what a path or pattern stands for; raise NoSuchPath where it is nothing."""
        spelling = self.spelt(text)
        found: list[Entry] = []
        for one in alternatives(spelling.pattern):
            found += await self._matching(spelling, spelling.absolute(one))
        if not found:
            raise NoSuchPath
        return in_order(found)

    async def _matching(self, spelling: Spelling, pattern: str) -> Sequence[Entry]:
        parts = [part for part in pattern.split("/") if part]
        wild = [is_pattern(part) for part in parts]
        first = wild.index(True) if any(wild) else len(parts)
        path = "/" + "/".join(map(unquoted, parts[:first]))
        start = await self.status(path, spelling.shown(path))
        found = [start] if start is not None else []
        for part, is_wild in zip(parts[first:], wild[first:], strict=True):
            inside: list[Entry | None] = []
            for directory in (one for one in found if one.is_directory):
                if is_wild:
                    names = matcher(part)
                    inside += [
                        replace(one, shown=spelling.shown(one.path))
                        async for one in self.entries(directory)
                        if names.fullmatch(one.path.rpartition("/")[2])
                    ]
                else:
                    path = child(directory.path, unquoted(part))
                    inside.append(await self.status(path, spelling.shown(path)))
            found = [one for one in inside if one is not None]
        return found


def _entry(one: types.HdfsFileStatusProto, path: str, shown: str) -> Entry:
    link = one.symlink.decode("utf-8", "replace") if one.HasField("symlink") else None
    return Entry(
        path, shown, _TYPES[one.fileType], one.length, one.permission.perm & ALL, one.owner,
        one.group, one.modification_time, one.access_time, one.block_replication, one.blocksize,
        bool(one.flags & types.HdfsFileStatusProto.HAS_ACL), link,
    )  # fmt: skip
