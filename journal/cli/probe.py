"""Asks one JournalNode, for `nnha status` and `nnha web`: plain values out, builtin errors."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from journal.errors import JournalError, Rejected
from journal.links.probed_link import ProbedLink
from journal.links.remote_node import JournalAddress, RemoteNode
from journal.model import JournalId
from journal.proto import journal_pb2 as pb


@asynccontextmanager
async def journal_probe(
    host: str, port: int, *, journal_id: str, nameservice_id: str
) -> AsyncIterator["JournalProbe"]:
    """Yield a probe whose questions share one connection; the first question connects.

    The command line loads this function by name, as `ha` imports nothing of `journal`; therefore it
    gives no values of types of ours.
    """
    address = JournalAddress(JournalId(journal_id), nameservice_id, link=ProbedLink)
    node = RemoteNode(host, port, address)
    try:
        yield JournalProbe(node)
    finally:
        await node.close()


class JournalProbe:
    """A JournalNode that can be asked."""

    def __init__(self, node: RemoteNode) -> None:
        self._node = node

    async def status(self, *, timeout_seconds: float) -> Mapping[str, object]:
        """Return what the node reports about one journal; txids that it does not have are None.

        Raises ``TimeoutError`` when there is no answer in time, ``OSError`` with the reason when
        there is no connection, and ``ValueError`` when the node refuses, or is no JournalNode.
        """
        try:
            async with asyncio.timeout(timeout_seconds):
                return _plain(await self._node.status(timeout_seconds))
        except Rejected as error:
            raise ValueError(str(error)) from error
        except JournalError as error:
            raise OSError(str(error)) from error


def _plain(status: pb.JournalStatus) -> Mapping[str, object]:
    return {
        "formatted": status.is_formatted,
        "http_port": status.http_port,
        "cluster_id": status.namespace_info.cluster_id or None,
        "learner": status.is_learner,
        "promised_epoch": status.last_promised_epoch,
        "writer_epoch": status.last_writer_epoch,
        "committed_txid": status.committed_txid if status.HasField("committed_txid") else None,
        "last_txid": status.last_written_txid if status.HasField("last_written_txid") else None,
        "open": status.HasField("open_segment_first_txid"),
        "disk_free_bytes": status.disk_free_bytes,
        "disk_total_bytes": status.disk_total_bytes,
        "failed_because": status.failed_because if status.HasField("failed_because") else None,
        "damaged_segments": list(status.damaged_segments),
        "disk_warning": status.disk_warning if status.HasField("disk_warning") else None,
        "daemon": _daemon(status.daemon) if status.HasField("daemon") else None,
    }


def _daemon(found: pb.Daemon) -> Mapping[str, object]:
    return {
        "version": found.version,
        "commit": found.commit,
        "pid": found.pid,
        "started_at": found.started_at,
        "config_hash": found.config_hash,
        "insecure": list(found.insecure),
        "config_keys": list(found.config_keys),
    }
