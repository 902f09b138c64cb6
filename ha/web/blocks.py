"""Asks the active NameNode about blocks and files, for viewers that may know the names of files."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from ha.cli.status.fsck import answer_of
from ha.cluster.view import ClusterView
from ha.conf.own_user import own_user
from ha.conf.topology import HostPort

ANSWER_SECONDS: Final = 10.0
_BLOCK: Final = dict.fromkeys(("path", "block", "state", "action"), str) | dict.fromkeys(
    ("bytes", "expected", "live"), int
)
_REPLICA: Final = dict.fromkeys(("datanode", "address", "rack", "type", "why", "fate"), str)


def blocks_of(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the blocks that a document lists, with their replicas; what is none is left out."""
    return [
        {**one, "replicas": _fitting(one.get("replicas"), _REPLICA)}
        for one in _fitting(document.get("blocks"), _BLOCK)
    ]


def not_listed(document: Mapping[str, Any]) -> int:
    """Return how many blocks there are that a document does not list."""
    (totals,) = _fitting([document.get("totals")], {"not_listed": int}) or ({"not_listed": 0},)
    return int(totals["not_listed"])


def _fitting(found: object, types: Mapping[str, type]) -> list[Mapping[str, Any]]:
    listed = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return [one for one in listed if all(isinstance(one.get(n), t) for n, t in types.items())]


async def ask(
    nodes: Mapping[str, HostPort], view: ClusterView, asked: Mapping[str, str]
) -> tuple[int, Mapping[str, Any]]:
    """Return a status of HTTP and a document as ``/fsck`` gives it, or with ``error``."""
    if view.active is None or view.active.of_hadoop:
        return 503, {"error": "no NameNode of nnha says that it is active"}
    target = "/fsck?" + urlencode({"form": "json", "ugi": own_user(), **asked})
    return await answer_of(nodes[view.active.namenode], target, ANSWER_SECONDS)
