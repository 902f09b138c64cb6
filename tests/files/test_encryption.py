"""Files whose blocks are encrypted on their way, by keys that a client gets from the NameNode."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from google.protobuf.message import Message

from files.checksum import file_checksum
from files.connect import connect
from files.errors import Unreadable
from files.namenodes import Namenodes
from ha.rpc.protocol import Call
from hadoop.block_tokens import NO_TOKEN
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.wire.errors import UnknownKey
from tests.datanode.block_client import Place
from tests.files.given_keys import GivenKeys
from tests.files.world import Handle, World, fresh_ring, get, noise, put, world

DATA = noise((1 << 20) + 500_000)
KEY = "getDataEncryptionKey"


def ports(of: World) -> list[int]:
    found = [node.status()["data_port"] for node in of.datanodes]
    return [port for port in found if isinstance(port, int)]


@pytest.mark.parametrize("algorithm", ["", "rc4"])
async def test_files_are_written_and_read_with_one_key(tmp_path: Path, algorithm: str) -> None:
    async with world(tmp_path, algorithm=algorithm) as made:
        await put(made.client, "/f", DATA)
        assert await get(made.client, "/f") == DATA
        await file_checksum(made.client, "/f")
        assert made.asked.count(KEY) == 1
        assert made.asked.count("getServerDefaults") == 1
        assert len(made.blocks()) == 6


async def test_a_cluster_that_encrypts_nothing_is_asked_for_no_key(tmp_path: Path) -> None:
    async with world(tmp_path, 1) as made:
        await put(made.client, "/f", DATA)
        assert await get(made.client, "/f") == DATA
        assert KEY not in made.asked


async def test_a_key_that_has_ended_is_renewed(tmp_path: Path) -> None:
    async with world(tmp_path, 1, algorithm="") as made:
        ring = made.namenode.cluster.block_keys
        assert ring is not None
        made.namenode.cluster.block_keys = replace(ring, lifetime_ms=-1)
        first = await made.client.data_key()
        made.namenode.cluster.block_keys = ring
        second = await made.client.data_key()
        assert first != second
        assert await made.client.data_key() == second
        assert made.asked.count(KEY) == 2


@dataclass(slots=True)
class Foreign:
    """Has the first ``left`` keys made by a NameNode whose block keys no DataNode has."""

    left: int

    async def meddle(self, handle: Handle, call: Call, request: Message) -> Message:
        answer = await handle(call, request)
        if self.left and isinstance(answer, calls.GetDataEncryptionKeyResponseProto):
            self.left -= 1
            answer.dataEncryptionKey.keyId = 5000
        return answer


async def test_a_key_that_a_datanode_does_not_know_is_renewed_once(tmp_path: Path) -> None:
    async with world(tmp_path, 1, algorithm="") as made:
        made.meddle = Foreign(1).meddle
        await put(made.client, "/f", DATA)
        assert await get(made.client, "/f") == DATA
        assert made.asked.count(KEY) == 2


async def test_of_a_block_whose_datanodes_know_no_key_nothing_is_read(tmp_path: Path) -> None:
    async with world(tmp_path, 1, algorithm="") as made:
        await put(made.client, "/f", DATA[:100])
        made.meddle = Foreign(100).meddle
        fresh = Namenodes(made.client.addresses, user=made.client.user, limits=made.client.limits)
        async with fresh as client:
            with pytest.raises(Unreadable, match="key 5000, which is not known here"):
                await get(client, "/f")


async def test_only_one_key_more_is_asked_for(tmp_path: Path) -> None:
    async with world(tmp_path, 1, algorithm="") as made:
        rings = [fresh_ring(serial) for serial in (5000, 6000, 7000)]
        keys = GivenKeys(
            [ring.data_key(made.namenode.cluster.pool, bytes(8), 0, "") for ring in rings]
        )
        to = Place(ports(made)[0]).info.id
        with pytest.raises(UnknownKey, match="key 6000"):
            await connect(keys, to, NO_TOKEN, seconds=10)
        assert [key.keyId for key in keys.keys] == [6000, 7000]


async def test_a_namenode_without_keys_gives_none(tmp_path: Path) -> None:
    """As one that has them off; DataNodes that encrypt let no client in then."""
    async with world(tmp_path, 1, algorithm="") as made:
        made.namenode.cluster.block_keys = None
        assert await made.client.data_key() is None
