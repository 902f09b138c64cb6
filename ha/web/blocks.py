"""Asks the active NameNode about blocks and files, for viewers that may know the names of files."""

import time
from collections.abc import Mapping
from stat import S_IFDIR, S_IFLNK, S_IFREG, filemode
from typing import Any, Final
from urllib.parse import urlencode

from ha.cli.status.fsck import answer_of
from ha.cluster.view import ClusterView
from ha.conf.own_user import own_user
from ha.conf.topology import HostPort

ANSWER_SECONDS: Final = 10.0
MOST_ENTRIES: Final = 1000
"""Of a folder on one page; a NameNode gives no more at once unless dfs.ls.limit is higher."""
_BLOCK: Final = dict.fromkeys(("path", "block", "state", "action"), str) | dict.fromkeys(
    ("bytes", "expected", "live"), int
)
_STATUS: Final = dict.fromkeys(
    ("pathSuffix", "type", "owner", "group", "permission"), str
) | dict.fromkeys(("length", "replication", "modificationTime"), int)
_REPLICA: Final = dict.fromkeys(("datanode", "address", "rack", "type", "why", "fate"), str)


def blocks_of(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the blocks that a document lists, with their replicas; what is none is left out."""
    return [
        {**one, "replicas": _fitting(one.get("replicas"), _REPLICA)}
        for one in _fitting(document.get("blocks"), _BLOCK)
    ]


def not_listed(document: Mapping[str, Any]) -> int:
    """Return how many blocks there are that a document does not list."""
    found = _inside(document, "totals", "not_listed")
    return found if isinstance(found, int) else 0


def folder_of(document: Mapping[str, Any], path: str) -> Mapping[str, object]:
    """Return what the page of a folder shows of LISTSTATUS_BATCH; of a file it is its one row.

    ``after`` is the name behind which the next page begins, None where there is none.
    """
    listing = document.get("DirectoryListing")
    every = _fitting(_inside(listing, "partialListing", "FileStatuses", "FileStatus"), _STATUS)
    folder = path.rstrip("/")
    shown = [_row(one, folder) for one in every[:MOST_ENTRIES]]
    more = _inside(listing, "remainingEntries") or len(every) > MOST_ENTRIES
    after = shown[-1]["pathSuffix"] if shown and more else None
    above = [folder[:at] or "/" for at, one in enumerate(folder) if one == "/"]
    return {"entries": shown, "after": after, "above": above, "user": own_user()}


def _row(one: Mapping[str, Any], folder: str) -> Mapping[str, Any]:
    name = one["pathSuffix"] or folder.rpartition("/")[2]
    kind = {"DIRECTORY": S_IFDIR, "SYMLINK": S_IFLNK}.get(one["type"], S_IFREG)
    return {
        **one,
        "path": f"{folder}/{one['pathSuffix']}".rstrip("/"),
        "name": name if name == name.strip() else f"\u201c{name}\u201d",  # else it may be unseen
        "mode": filemode(kind | int(one["permission"], 8)) + "+" * bool(one.get("aclBit")),
        "changed": time.strftime("%Y-%m-%d %H:%M", time.gmtime(one["modificationTime"] // 1000)),
    }


def _inside(found: object, *names: str) -> object:
    """Return what a document has under these names, one within the other; None if nothing."""
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _fitting(found: object, types: Mapping[str, type]) -> list[Mapping[str, Any]]:
    listed = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return [one for one in listed if all(isinstance(one.get(n), t) for n, t in types.items())]


async def ask(
    nodes: Mapping[str, HostPort], view: ClusterView, page: str, asked: Mapping[str, str]
) -> tuple[int, Mapping[str, Any]]:
    """Return a status of HTTP and what a page of the active says to our user, or ``error``."""
    if view.active is None or view.active.of_hadoop:
        return 503, {"error": "no NameNode of nnha says that it is active"}
    target = f"{page}?" + urlencode({"user.name": own_user(), **asked})
    status, found = await answer_of(nodes[view.active.namenode], target, ANSWER_SECONDS)
    fault = found.get("RemoteException")
    if isinstance(fault, dict):
        status = 503 if fault.get("exception") == "StandbyException" else status
        found = {"error": fault.get("message")}
    return status, found
