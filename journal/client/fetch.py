"""Segments over HTTP from one JournalNode, checked while they arrive (qjm 3)."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from urllib.parse import urlencode

import aiohttp

from journal.client.frames import Chunk, FrameReader
from journal.client.settings import ReaderSettings
from journal.errors import StorageFailed, Unavailable
from journal.model import JournalId, NamespaceInfo, TxId


def segment_url(
    host: str,
    port: int,
    *,
    journal_id: JournalId,
    first: TxId,
    namespace: NamespaceInfo | None,
    in_progress: bool,
    damaged_ok: bool = False,
) -> str:
    """Where a node serves the segment that starts at ``first``; Hadoop's path and names.

    With ``damaged_ok`` a node whose copy is damaged gives what stands before the damage.
    """
    query = {"jid": journal_id, "segmentTxId": str(first)}
    if namespace is not None:
        query["storageInfo"] = namespace.storage_info()
    query["inProgressOk"] = "true" if in_progress else "false"
    if damaged_ok:
        query["damagedOk"] = "true"
    at = f"[{host}]" if ":" in host else host
    return f"http://{at}:{port}/getJournal?{urlencode(query)}"


def http_session(settings: ReaderSettings) -> aiohttp.ClientSession:
    """A session with the deadlines of these settings, and none for a whole segment."""
    timeout = aiohttp.ClientTimeout(
        total=None,
        connect=settings.http_open_timeout_seconds,
        sock_read=settings.http_read_timeout_seconds,
    )
    return aiohttp.ClientSession(timeout=timeout, auto_decompress=False)


async def read_segment(
    session: aiohttp.ClientSession,
    url: str,
    frames: FrameReader,
    *,
    chunk_bytes: int,
    up_to_end: bool = True,
) -> AsyncGenerator[Chunk, None]:
    """The chunks of one segment file as they arrive; at most ``chunk_bytes`` are held, or one op.

    Raises:
        Unavailable: if the node does not serve it, or stops in the middle.
        StorageFailed: if what it serves is damaged, or (with ``up_to_end``) too short.
    """
    try:
        async with session.get(url) as response:
            if response.status != 200:
                raise Unavailable(f"{url} answered {response.status} {response.reason}")
            async with aclosing(_pieces(response, chunk_bytes)) as pieces:
                async for piece in pieces:
                    chunk = frames.feed(piece)
                    if chunk is not None:
                        yield chunk
                    if frames.complete:
                        return
    except (aiohttp.ClientError, TimeoutError, OSError) as failure:
        raise Unavailable(f"{url}: {str(failure) or type(failure).__name__}") from failure
    except ValueError as damage:
        raise StorageFailed(f"{url}: {damage}") from damage
    if up_to_end and not frames.complete:
        raise StorageFailed(f"{url} ends before transaction {frames.next_txid}")


async def _pieces(response: aiohttp.ClientResponse, size: int) -> AsyncGenerator[bytes, None]:
    """The body in pieces of ``size`` bytes, so that a chunk is worth its handling."""
    held = bytearray()
    async for data, _ in response.content.iter_chunks():
        held += data
        while len(held) >= size:
            yield bytes(held[:size])
            del held[:size]
    if held:
        yield bytes(held)
