"""A format by force names the promise that its caller saw, and spares a newer writer's journal."""

from pathlib import Path

import pytest

from journal.messages import namespace_message
from journal.proto import journal_pb2 as pb
from tests.journal.core.requests_of import NAMESPACE, Writer
from tests.journal.node.process import Refused, node_and_client
from tests.journal.writer.journal_cluster import Nodes, write_segment


async def test_a_writer_that_came_since_is_not_destroyed(tmp_path: Path) -> None:
    async with node_and_client(tmp_path) as (_, client):
        await client.format()
        await client.new_epoch(1)
        await client.written(Writer(1), 1, 3)
        request = pb.FormatRequest(
            journal_id=client.journal_id,
            namespace_info=namespace_message(NAMESPACE),
            force=True,
            founding=True,
            seen_promised_epoch=0,
            seen_namespace_id=NAMESPACE.namespace_id,
        )
        with pytest.raises(Refused) as refused:
            await client.call("Format", request)
        assert refused.value.refusal is not None
        assert refused.value.refusal.kind == pb.Refusal.FENCED
        assert refused.value.refusal.promised_epoch == 1
        assert (await client.status()).last_written_txid == 3
        request.seen_promised_epoch = 1
        await client.call("Format", request)
        assert (await client.status()).last_promised_epoch == 0


async def test_a_writer_formats_what_it_has_seen(nodes: Nodes) -> None:
    writer = nodes.writer()
    await writer.become_writer()
    await write_segment(writer, 1, 3)
    await writer.close()
    again = nodes.writer()
    await again.format(force=True)
    await again.close()
    assert await nodes.recover() == (1, 0)
