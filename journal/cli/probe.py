"""One question to one JournalNode, for `nnha status`: plain values out, builtin errors."""

import asyncio
from collections.abc import Mapping
from typing import Final

from journal.errors import JournalError
from journal.links.remote_node import JournalAddress, RemoteNode
from journal.model import JournalId

_HTTP2_HELLO: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""What every HTTP/2 client says first: the preface and empty settings (RFC 9113, 3.4)."""
_FRAME_HEAD_BYTES: Final = 9


async def journal_status(
    host: str, port: int, *, journal_id: str, nameservice_id: str, timeout_seconds: float
) -> Mapping[str, object]:
    """What the node tells about one journal; txids that it does not have are None.

    The command line loads this by name, as `ha` imports nothing of `journal`; therefore it gives
    no types of ours.  Raises ``TimeoutError`` when there is no answer in time, and ``OSError``
    with the reason when there is no connection or the node refuses.
    """
    async with asyncio.timeout(timeout_seconds):
        await _greet(host, port)
        node = RemoteNode(host, port, JournalAddress(JournalId(journal_id), nameservice_id))
        try:
            status = await node.status(timeout_seconds)
        except JournalError as error:
            raise OSError(str(error)) from error
        finally:
            await node.close()
    return {
        "formatted": status.is_formatted,
        "promised_epoch": status.last_promised_epoch,
        "writer_epoch": status.last_writer_epoch,
        "committed_txid": status.committed_txid if status.HasField("committed_txid") else None,
        "last_txid": status.last_written_txid if status.HasField("last_written_txid") else None,
        "open": status.HasField("open_segment_first_txid"),
        "disk_free_bytes": status.disk_free_bytes,
        "disk_total_bytes": status.disk_total_bytes,
        "failed_because": status.failed_because if status.HasField("failed_because") else None,
    }


async def _greet(host: str, port: int) -> None:
    """Return when something that speaks HTTP/2 has answered there.

    A frozen node still accepts connections, and gRPC, once it has begun to connect to one, holds
    up the end of our process for seconds.  A plain socket does not.
    """
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(_HTTP2_HELLO)
        await reader.readexactly(_FRAME_HEAD_BYTES)
    except asyncio.IncompleteReadError as error:
        raise OSError(f"what listens at {host}:{port} is no JournalNode") from error
    finally:
        writer.close()
