"""Asks the active NameNode about blocks and files, for viewers that may know the names of files."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from ha.cli.status.fsck import answer_of
from ha.cluster.view import ClusterView
from ha.conf.own_user import own_user
from ha.conf.topology import HostPort
from ha.notices.codec import entry

ANSWER_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica in the NameNode's words."""

    datanode: str
    address: str
    rack: str
    type: str
    why: str
    fate: str


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a file in the NameNode's words."""

    block: str
    bytes: int
    expected: int
    live: int
    state: str
    action: str
    replicas: tuple[Replica, ...]
    path: str = ""


def blocks_of(document: Mapping[str, Any]) -> tuple[Block, ...]:
    """Return the blocks that a document lists; what is none is left out.  Paths are not cut."""
    found = document.get("blocks")
    listed = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    read = ((entry(Block, one), one.get("path")) for one in listed)
    return tuple(replace(one, path=path) for one, path in read if one and isinstance(path, str))


async def ask(
    nodes: Mapping[str, HostPort], view: ClusterView, asked: Mapping[str, str]
) -> tuple[int, Mapping[str, Any]]:
    """Return a status of HTTP and a document as ``/fsck`` gives it, or with ``error``."""
    if view.active is None or view.active.of_hadoop:
        return 503, {"error": "no NameNode of nnha says that it is active"}
    target = "/fsck?" + urlencode({"form": "json", "ugi": own_user(), **asked})
    return await answer_of(nodes[view.active.namenode], target, ANSWER_SECONDS)
