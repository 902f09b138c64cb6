"""Bad requests to a real JournalNode process: refused by type, and nothing changes.

The folder tree is compared byte for byte, the memory is read from the kernel, and at the end of
each story the node still serves its writer.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

import aiohttp
import grpc
import pytest

from journal.messages import namespace_message
from journal.node.settings import NodeSettings
from journal.proto import journal_pb2 as pb
from tests.journal.core.requests_of import NAMESPACE, Writer, record, records
from tests.journal.node.process import JID, NodeClient, Refused
from tests.journal.node.test_process import configuration, free_port, process

MEMORY_KB = 40 * 1024
"""How much a storm of bad input may add to a node's resident memory."""
IDS = 10_000
STREAMS = 25
"""At once from one peer: a node takes 32, and gRPC gives up a surplus one after its second try."""
BAD_IDS = ("", ".", "..", "../evil", "a/b", "/etc", "..%2fevil", "%2e%2e", ".hidden", "a\\b", "a b",
           "a\x00b", "\u2025", "\uff21", "x" * 300, "ns1/", "ns1\n")  # fmt: skip
BAD_EPOCHS = (0, 2**63, 2**64 - 1)


@dataclass(frozen=True, slots=True)
class Target:
    """A running node with one journal, 1-3 finalized and segment 4 open with one edit."""

    client: NodeClient
    writer: Writer
    folder: Path
    rpc_port: int
    http_port: int
    pid: int
    before: dict[str, bytes] = field(default_factory=dict)

    def tree(self) -> dict[str, bytes]:
        for _ in range(100):
            try:
                return {
                    str(path.relative_to(self.folder)): b"" if path.is_dir() else path.read_bytes()
                    for path in sorted(self.folder.rglob("*"))
                }
            except FileNotFoundError:
                continue  # a small file was renamed into its place since it was listed
        raise AssertionError(f"{self.folder} does not come to rest")

    def memory_kb(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
        return int(line.split()[1])


@asynccontextmanager
async def unharmed(tmp_path: Path) -> AsyncIterator[Target]:
    """Run a node that must be the same afterwards, and must still take an edit."""
    port, http, folder = free_port(), free_port(), tmp_path / "jn"
    conf = configuration(tmp_path / "conf", edits_dir=folder, rpc_address=f"127.0.0.1:{port}",
                         http_address=f"127.0.0.1:{http}")  # fmt: skip
    async with process(conf, port) as (pid, client):
        await client.format()
        await client.new_epoch(1)
        writer = Writer(1)
        await client.written(writer, 1, 3)
        await client.finalize(writer, 1, 3)
        await client.written(writer, 4, 4)
        target = Target(client, writer, folder, port, http, pid)
        target.before.update(target.tree())
        memory = target.memory_kb()
        yield target
        assert target.tree() == target.before
        assert target.memory_kb() - memory < MEMORY_KB
        (reply,) = await client.write([client.batch(writer, 4, 5, 5)])
        assert not reply.HasField("refusal"), reply
        assert (await client.status()).last_promised_epoch == 1


async def refused(work: Awaitable[object]) -> Refused:
    with pytest.raises(Refused) as caught:
        await work
    assert caught.value.refusal is not None, f"no typed refusal: {caught.value}"
    return caught.value


@pytest.mark.parametrize("door", ["grpc", "http"])
async def test_garbage_on_a_port(tmp_path: Path, door: str) -> None:
    noise = random.Random(door)
    shapes: list[Callable[[], bytes]] = [
        lambda: noise.randbytes(64 * 1024),
        lambda: b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n",
        lambda: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + noise.randbytes(4096),
        lambda: b"\x00" * 10_000,
        lambda: b"POST /getJournal HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        lambda: b"",
    ]
    async with unharmed(tmp_path) as target:
        port = target.rpc_port if door == "grpc" else target.http_port
        await asyncio.gather(*(_shout(port, shape()) for shape in shapes * 5))


async def _shout(port: int, data: bytes) -> None:
    """Say something and leave when we are shown the door, however that is done."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(30):
            writer.write(data)
            writer.write_eof()
            while await reader.read(65536):
                pass
    except (OSError, TimeoutError):
        pass
    finally:
        # Not close(): that would wait until the other side has read all that we said.
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()


async def test_another_cluster_is_refused(tmp_path: Path) -> None:
    async with unharmed(tmp_path) as target:
        for other in (
            replace(NAMESPACE, cluster_id="elsewhere"),
            replace(NAMESPACE, namespace_id=54321),
        ):
            request = pb.NewEpochRequest(
                journal_id=JID, namespace_info=namespace_message(other), epoch=9
            )
            await refused(target.client.call("NewEpoch", request))
            status, _ = await get(
                target, jid=JID, segmentTxId="1", storageInfo=other.storage_info()
            )
            assert status == 403
        # Formatting what is formatted needs force, whoever asks.
        await refused(target.client.format(replace(NAMESPACE, cluster_id="elsewhere")))


async def test_bad_journal_ids_on_both_doors(tmp_path: Path) -> None:
    """See docs/reference/operations.md#names-from-a-peer."""
    (tmp_path / "evil").mkdir()
    async with unharmed(tmp_path) as target:
        for name in BAD_IDS:
            stranger = NodeClient(target.rpc_port, name)
            try:
                await refused(stranger.format())
                await refused(stranger.new_epoch(2))
                await refused(stranger.status())
            finally:
                await stranger.close()
            status, _ = await get(target, jid=name, segmentTxId="1")
            assert status in {400, 403, 404}, name
            assert target.tree() == target.before, name
            assert not list((tmp_path / "evil").iterdir()), name


async def test_epochs_out_of_range(tmp_path: Path) -> None:
    async with unharmed(tmp_path) as target:
        for epoch in BAD_EPOCHS:
            await refused(target.client.new_epoch(epoch))
            stale = Writer(epoch)
            await refused(target.client.start(stale, 5))
            await refused(target.client.finalize(stale, 4, 4))
            (reply,) = await target.client.write([target.client.batch(stale, 4, 5, 5)])
            assert reply.HasField("refusal"), epoch
            assert target.tree() == target.before, epoch


def bad_batches() -> dict[str, pb.Batch]:
    """Batches after edit 4 that are not what they say."""
    good = records(5, 7)
    flipped = bytearray(good)
    flipped[30] ^= 1
    first = {"segment_first_txid": 4, "first_txid": 5}
    return {
        "a CRC that does not fit": pb.Batch(**first, count=3, records=bytes(flipped)),
        "fewer edits than counted": pb.Batch(**first, count=4, records=good),
        "more edits than counted": pb.Batch(**first, count=2, records=good),
        "a gap inside": pb.Batch(**first, count=2, records=record(5) + record(7)),
        "a gap before": pb.Batch(segment_first_txid=4, first_txid=6, count=2,
                                 records=records(6, 7)),
        "other txids than said": pb.Batch(**first, count=3, records=records(6, 8)),
        "half an edit": pb.Batch(**first, count=3, records=good[:-5]),
        "edits, but none counted": pb.Batch(**first, count=0, records=good),
        "noise": pb.Batch(**first, count=3, records=random.Random(1).randbytes(500)),
        "padding": pb.Batch(**first, count=1, records=b"\xff" * 64),
        "a txid at the limit": pb.Batch(segment_first_txid=4, first_txid=2**64 - 1, count=1,
                                        records=good),
        "a count at the limit": pb.Batch(**first, count=2**32 - 1, records=good),
    }  # fmt: skip


async def test_batches_that_are_not_what_they_say(tmp_path: Path) -> None:
    async with unharmed(tmp_path) as target:
        for name, batch in bad_batches().items():
            info = target.client.info(target.writer)
            (reply,) = await target.client.write([pb.WriteRequest(info=info, batch=batch)])
            assert reply.HasField("refusal"), name
            assert reply.refusal.message, name
            assert target.tree() == target.before, name


async def test_an_oversized_batch(tmp_path: Path) -> None:
    """Refuse it by its size, before anything looks into it."""
    async with unharmed(tmp_path) as target:
        info = target.client.info(target.writer)
        huge = pb.Batch(
            segment_first_txid=4, first_txid=5, count=1, records=bytes(65 * 1024 * 1024)
        )
        for _ in range(3):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await target.client.write([pb.WriteRequest(info=info, batch=huge)])
            assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_ten_thousand_journal_ids_from_one_peer(tmp_path: Path) -> None:
    """Asking creates nothing, nor does it leave anything in the node's memory."""
    async with unharmed(tmp_path) as target:
        for start in range(0, IDS, STREAMS):
            names = [f"flood-{number}" for number in range(start, start + STREAMS)]
            await asyncio.gather(*(
                refused(target.client.call("GetStatus", pb.JournalRequest(journal_id=name)))
                for name in names
            ))  # fmt: skip


async def get(target: Target, **query: str) -> tuple[int, bytes]:
    text = "&".join(f"{key}={quote(value, safe='')}" for key, value in query.items())
    url = f"http://127.0.0.1:{target.http_port}/getJournal?{text}"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.read()


async def test_many_formats_from_one_peer(tmp_path: Path) -> None:
    """Formatting creates what the node's limit allows, and no more."""
    port, folder = free_port(), tmp_path / "jn"
    conf = configuration(tmp_path / "conf", edits_dir=folder, rpc_address=f"127.0.0.1:{port}",
                         http_address="127.0.0.1:0")  # fmt: skip
    async with process(conf, port) as (_, client):
        limit = NodeSettings(folder=folder).max_unnamed_journals
        for number in range(IDS // 20):
            client.journal_id = f"flood-{number}"
            if number < limit:
                await client.format()
            else:
                await refused(client.format())
        assert len(list(folder.iterdir())) == limit
