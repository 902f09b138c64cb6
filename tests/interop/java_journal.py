"""Our JournalNodes and, in a JVM, Hadoop's QuorumJournalManager as their writer and reader."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from journal.frame import file_header
from journal.links.hadoop_link import HadoopLink
from journal.model import LAYOUT_VERSION, NamespaceInfo, TxId
from namenode_sim.edits.codec import encode
from namenode_sim.edits.ops import Delete
from namenode_sim.edits.values import NO_RPC_IDS
from tests.interop.hadoop_server import Hadoop, JavaObject
from tests.journal.writer.journal_cluster import JOURNAL, NAMESPACE, Nodes

T = TypeVar("T")

WAIT_SECONDS = 60.0
QUICK = {
    "ipc.client.connect.max.retries": "0",
    "ipc.client.connect.retry.interval": "100",
    "dfs.qjournal.write-txns.timeout.ms": "10000",
}


def edits(first: int, last: int, tag: str) -> bytes:
    """Return framed edits that Hadoop can decode; the tag distinguishes writers."""
    return b"".join(
        encode(Delete(f"/{tag}/{txid}", 0, NO_RPC_IDS), TxId(txid), LAYOUT_VERSION)
        for txid in range(first, last + 1)
    )


def paths(first: int, last: int, tag: str) -> list[str]:
    """Return what these edits delete."""
    return [f"/{tag}/{txid}" for txid in range(first, last + 1)]


class OurNodes:
    """Three JournalNodes on an event loop of their own, for the JVM's calls block this thread."""

    def __init__(self, folder: Path) -> None:
        self.nodes = Nodes(folder, 3, HadoopLink)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="journal nodes")
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_SECONDS)

    def start(self, *which: int) -> None:
        self.run(self.nodes.start(*which))

    def stop(self, *which: int) -> None:
        self.run(self.nodes.stop(*which))

    def end(self) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def uri(self) -> str:
        """The shared edits directory as a Java NameNode is given it."""
        hosts = ";".join(f"{host}:{port}" for host, port in self.nodes.addresses)
        return f"qjournal://{hosts}/{JOURNAL}"


@contextmanager
def our_nodes(folder: Path) -> Iterator[OurNodes]:
    """Run nodes without a journal."""
    nodes = OurNodes(folder)
    try:
        nodes.start()
        yield nodes
    finally:
        nodes.end()


class JavaWriter:
    """A ``QuorumJournalManager``, which is one writer."""

    def __init__(self, hadoop: Hadoop, uri: str, folder: Path) -> None:
        self._hadoop = hadoop
        self._folder = folder
        self.manager = hadoop.hadoop.hdfs.qjournal.client.QuorumJournalManager(
            hadoop.configuration(QUICK),
            hadoop.gateway.jvm.java.net.URI.create(uri),
            java_namespace(hadoop, NAMESPACE),
            "ns1",
        )

    def format(self) -> None:
        self.manager.format(java_namespace(self._hadoop, NAMESPACE), False)

    def become_writer(self) -> None:
        self.manager.recoverUnfinalizedSegments()

    def start(self, first: int) -> JavaObject:
        """Return the stream of a new segment."""
        return self.manager.startLogSegment(first, LAYOUT_VERSION)

    def write(self, stream: JavaObject, first: int, last: int, tag: str) -> None:
        """Write one batch, which is on a quorum when this returns."""
        source = self._source(first, last, tag)
        for _ in range(first, last + 1):
            stream.write(source.readOp())  # at once: the reader uses the object again
        stream.setReadyToFlush()
        stream.flush()

    def write_segment(self, first: int, last: int, tag: str) -> None:
        stream = self.start(first)
        self.write(stream, first, last, tag)
        stream.close()
        self.manager.finalizeLogSegment(first, last)

    def read(self, first: int, *, in_progress: bool = False) -> list[str]:
        """Return what the edits from ``first`` on delete, as Hadoop's own reader hands them out."""
        streams = self._hadoop.gateway.jvm.java.util.ArrayList()
        self.manager.selectInputStreams(streams, first, in_progress, False)
        found = []
        for stream in streams:
            while (op := stream.readOp()) is not None:
                text = op.toString()
                found.append(text.partition("path=")[2].partition(",")[0])
            stream.close()
        return found

    def close(self) -> None:
        self.manager.close()

    def _source(self, first: int, last: int, tag: str) -> JavaObject:
        """Edits as Java objects: Hadoop's own reader makes them of a file."""
        file = self._folder / f"{tag}-{first}-{last}"
        file.write_bytes(file_header(LAYOUT_VERSION) + edits(first, last, tag))
        return self._hadoop.hadoop.hdfs.server.namenode.EditLogFileInputStream(
            self._hadoop.gateway.jvm.java.io.File(str(file)), first, last, False
        )


def java_namespace(hadoop: Hadoop, info: NamespaceInfo) -> JavaObject:
    return hadoop.hadoop.hdfs.server.protocol.NamespaceInfo(
        info.namespace_id, info.cluster_id, info.block_pool_id, info.ctime
    )
