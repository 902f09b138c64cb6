"""Real JournalNodes on real sockets and folders, in this process, and edits to write to them."""

import struct
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from deploy.local.cluster.ports import free_ports
from journal.links.grpc_link import GrpcLink
from journal.links.link import LinkFactory
from journal.model import JournalId, NamespaceInfo, TxId
from journal.node.process.daemon import JournalNodeDaemon, PortTaken
from journal.node.settings import NodeSettings
from journal.reader.reader import JournalReader
from journal.writer.writer import QuorumWriter, WriterSettings

JOURNAL = JournalId("test-journal")
_TRIES = 5  # of a first start on free ports
NAMESPACE = NamespaceInfo(-65, 12345, "mycluster", 0, "my-bp")
QUICK = WriterSettings(
    get_journal_state_timeout_seconds=5,
    new_epoch_timeout_seconds=5,
    prepare_recovery_timeout_seconds=5,
    accept_recovery_timeout_seconds=5,
    finalize_segment_timeout_seconds=5,
    start_segment_timeout_seconds=5,
    write_txns_timeout_seconds=5,
    operations_timeout_seconds=5,
)


def edit(txid: int, tag: str = "") -> bytes:
    """Frame one edit.  The tag distinguishes writers: equal txids with other bytes must be seen."""
    body = f"{tag}#{txid}".encode()
    head = struct.pack(">Biq", 3, 12 + len(body), txid) + body
    return head + struct.pack(">I", zlib.crc32(head))


def edits(first: int, last: int, tag: str = "") -> bytes:
    return b"".join(edit(txid, tag) for txid in range(first, last + 1))


class Nodes:
    """Some JournalNodes; each keeps its folder and its ports when it is started again."""

    def __init__(self, folder: Path, count: int = 3, link: LinkFactory = GrpcLink) -> None:
        self._folder = folder
        self._link = link
        self.extra: dict[str, Any] = {}
        # Below the range of outgoing connections: a connection to a node that is down could
        # otherwise be given its port, and the node could not come back.
        ports = free_ports(3 * count)
        self._hadoop_ports = list(ports[:count])
        self._ports = list(zip(ports[count : 2 * count], ports[2 * count :], strict=True))
        self._began: set[int] = set()
        self.daemons: list[JournalNodeDaemon | None] = [None] * count

    async def start(self, *which: int) -> None:
        for i in which or range(len(self.daemons)):
            daemon = await self._first_start(i) if i not in self._began else await self._launch(i)
            self._began.add(i)
            self.daemons[i], self._ports[i] = daemon, (daemon.rpc_port, daemon.http_port)
            self._hadoop_ports[i] = daemon.hadoop_port

    async def _first_start(self, i: int) -> JournalNodeDaemon:
        """Start a node; change its ports, which are not known yet, if another run got them first.

        Raises:
            PortTaken: others are faster again and again.
        """
        for _ in range(_TRIES - 1):
            try:
                return await self._launch(i)
            except PortTaken:
                self._hadoop_ports[i], *others = free_ports(3)
                self._ports[i] = (others[0], others[1])
        return await self._launch(i)

    async def _launch(self, i: int) -> JournalNodeDaemon:
        rpc, http = self._ports[i]
        daemon = JournalNodeDaemon(
            NodeSettings(
                folder=self._folder / f"jn{i}",
                rpc_port=rpc,
                hadoop_host=None if self._link is GrpcLink else "127.0.0.1",
                hadoop_port=self._hadoop_ports[i],
                http_port=http,
                stop_grace_seconds=0.0,
                **self.extra,
            )
        )
        await daemon.start()
        return daemon

    async def stop(self, *which: int) -> None:
        for i in which or range(len(self.daemons)):
            daemon, self.daemons[i] = self.daemons[i], None
            if daemon is not None:
                await daemon.stop()

    @property
    def addresses(self) -> list[tuple[str, int]]:
        if self._link is not GrpcLink:
            return [("127.0.0.1", port) for port in self._hadoop_ports]
        return [("127.0.0.1", rpc) for rpc, _ in self._ports]

    def name(self, i: int) -> str:
        host, port = self.addresses[i]
        return f"{host}:{port}"

    def reached_by(self, link: LinkFactory) -> None:
        """Set how the next writers reach them."""
        self._link = link

    def writer(
        self, settings: WriterSettings = QUICK, addresses: Sequence[tuple[str, int]] = ()
    ) -> QuorumWriter:
        return QuorumWriter(
            addresses or self.addresses,
            journal_id=JOURNAL,
            nameservice_id="ns1",
            namespace=NAMESPACE,
            settings=settings,
            link=self._link,
        )

    def reader(self) -> JournalReader:
        # Readers know gRPC only.
        addresses = [("127.0.0.1", rpc) for rpc, _ in self._ports]
        return JournalReader(
            addresses, journal_id=JOURNAL, nameservice_id="ns1", namespace=NAMESPACE
        )

    def current(self, i: int) -> Path:
        return self._folder / f"jn{i}" / JOURNAL / "current"

    def finalized(self, i: int) -> list[tuple[int, int]]:
        names = sorted(p.name for p in self.current(i).glob("edits_[0-9]*-*"))
        return [(int(n[6:25]), int(n[26:45])) for n in names]

    async def format(self) -> None:
        writer = self.writer(WriterSettings())  # a busy disk may take longer than QUICK allows
        await writer.format()
        await writer.close()

    async def recover(self) -> tuple[int, int]:
        """Have a clean writer recover and leave; return its epoch and the last txid."""
        writer = self.writer()
        try:
            won = await writer.become_writer()
            return won.epoch, won.last_txid
        finally:
            await writer.close()

    async def read_all(self, first: int = 1) -> bytes:
        reader = self.reader()
        try:
            return b"".join([chunk.records async for chunk in reader.edits(TxId(first))])
        finally:
            await reader.close()

    def ensure_recovered(self, first: int, last: int) -> None:
        """Check that at least a majority has finalized it so, and none otherwise."""
        found = [dict(self.finalized(i)).get(first) for i in range(len(self.daemons))]
        assert found.count(last) * 2 > len(found), found
        assert set(found) <= {last, None}, found


@asynccontextmanager
async def formatted_nodes(
    folder: Path, count: int = 3, link: LinkFactory = GrpcLink, *, edits_cache_bytes: int = 0
) -> AsyncIterator[Nodes]:
    nodes = Nodes(folder, count, link)
    nodes.extra["edits_cache_bytes"] = edits_cache_bytes
    try:
        await nodes.start()
        await nodes.format()
        yield nodes
    finally:
        await nodes.stop()


async def write_segment(writer: QuorumWriter, first: int, last: int, tag: str = "") -> None:
    await writer.start_segment(TxId(first))
    await writer.write(TxId(first), last - first + 1, edits(first, last, tag))
    await writer.finalize_segment(TxId(last))
