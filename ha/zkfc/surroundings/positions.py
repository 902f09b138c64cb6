"""Reads epoch and last transaction from a NameNode's pages; a missing value is None."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any, Final

from ha.conf.topology import HostPort

MAX_ANSWER_BYTES: Final = 256 * 1024
_NAMENODE_INFO: Final = "/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo"


@dataclass(frozen=True, slots=True)
class Position:
    """Where a NameNode's journal stands."""

    epoch: int | None = None
    last_txid: int | None = None


async def position_of(address: HostPort, *, deadline_seconds: float) -> Position:
    """The position as the NameNode's status page has it; Hadoop's have a bean, without an epoch.

    Raises OSError, TimeoutError, EOFError or ValueError where there is no such page.
    """
    async with asyncio.timeout(deadline_seconds):
        page = await _page(address, "/status")
        if page is not None:
            return Position(_whole(page.get("epoch")), _whole(page.get("last_txid")))
        page = await _page(address, _NAMENODE_INFO)
    if page is None:
        raise ValueError("it has neither /status nor /jmx")
    try:
        told = json.loads(page["beans"][0]["JournalTransactionInfo"])
        return Position(last_txid=int(told["LastAppliedOrWrittenTxId"]))
    except (LookupError, TypeError, RecursionError) as failure:
        raise ValueError(f"its bean NameNodeInfo has no transactions: {failure!r}") from failure


async def _page(address: HostPort, path: str) -> dict[str, Any] | None:
    """The JSON object at a path; None where there is no such page."""
    # One question to a neighbour: an HTTP client of 11 MB would live on for it.
    reader, writer = await asyncio.open_connection(
        address.host, address.port, limit=MAX_ANSWER_BYTES
    )
    try:
        writer.write(f"GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n".encode())
        status = await reader.readline()
        if status.split()[1:2] == [b"404"]:
            return None
        if status.split()[1:2] != [b"200"]:
            raise ValueError(f"not a status page: {status[:80]!r}")
        await reader.readuntil(b"\r\n\r\n")
        body = await _bounded(reader)
    except asyncio.LimitOverrunError as failure:
        raise ValueError(f"its status page's header does not end: {failure}") from failure
    finally:
        writer.close()
    try:
        found = json.loads(body)
    except RecursionError as failure:
        raise ValueError("its status page is nested too deeply") from failure
    if not isinstance(found, dict):
        raise ValueError("its status page is no JSON object")  # noqa: TRY004 - the answer's fault
    return found


async def _bounded(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while data := await reader.read(MAX_ANSWER_BYTES):
        body += data
        if len(body) > MAX_ANSWER_BYTES:
            raise ValueError(f"its status page has more than {MAX_ANSWER_BYTES} bytes")
    return bytes(body)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
