"""Reads the epoch and the last transaction from a NameNode's HTTP pages."""

import asyncio
import json
from typing import Any, Final

from ha.conf.topology import HostPort
from ha.daemon.http.http_get import http_get
from ha.record import dataclass
from ha.security.caller import Role

MAX_ANSWER_BYTES: Final = 256 * 1024
_NAMENODE_INFO: Final = "/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo"


@dataclass(frozen=True, slots=True)
class Position:
    """The journal position of a NameNode; None for a value that its pages do not show."""

    epoch: int | None = None
    last_txid: int | None = None


async def position_of(address: HostPort, *, deadline_seconds: float) -> Position:
    """Read the position from /status, or from the bean of Hadoop's NameNode, without an epoch.

    Raises OSError, TimeoutError or ValueError if it cannot be read.
    """
    async with asyncio.timeout(deadline_seconds):
        page = await _page(address, "/status")
        if page is not None:
            return Position(_whole(page.get("epoch")), _whole(page.get("last_txid")))
        page = await _page(address, _NAMENODE_INFO)
    if page is None:
        raise ValueError("it has neither /status nor /jmx")
    try:
        info = json.loads(page["beans"][0]["JournalTransactionInfo"])
        return Position(last_txid=int(info["LastAppliedOrWrittenTxId"]))
    except (LookupError, TypeError, RecursionError) as failure:
        raise ValueError(f"its bean NameNodeInfo has no transactions: {failure!r}") from failure


async def _page(address: HostPort, target: str) -> dict[str, Any] | None:
    """Return the JSON object at a path; None if the NameNode has no such page."""
    try:
        answer = await http_get(address, target, most_bytes=MAX_ANSWER_BYTES, role=Role.NAMENODE)
    except ValueError as failure:
        raise ValueError(f"its status page cannot be read: {failure}") from failure
    if answer.status == 404:
        return None
    if answer.status != 200:
        raise ValueError(f"not a status page: HTTP {answer.status} {answer.reason[:80]}")
    try:
        found = json.loads(answer.body)
    except RecursionError as failure:
        raise ValueError("its status page is nested too deeply") from failure
    if not isinstance(found, dict):
        raise ValueError("its status page is no JSON object")  # noqa: TRY004 - the answer's fault
    return found


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
