"""AES in place of the layer of SASL, where both sides have it and privacy is agreed on."""

import asyncio
from pathlib import Path
from typing import Final

import pytest

from ha.security.sasl.digest_md5 import DigestAcceptor
from ha.security.sasl.mechanism import Protection, Proven
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.wire.ciphered import fresh_keys
from hadoop.wire.connection import Connection
from hadoop.wire.errors import MalformedTransfer
from hadoop.wire.handshake import MAGIC, Step, connect, next_step, service
from hadoop.wire.peer import NO_BUDGET, Peer
from tests.datanode import block_client
from tests.datanode.block_client import SECONDS, Place, until
from tests.datanode.test_handshake import ALL, READ, call_with, everything, keys

AES_WHERE: Final = {
    "both have it, with privacy": (Protection.PRIVACY, 128, True, True),
    "the DataNode has it not": (Protection.PRIVACY, 0, True, False),
    "the client offers nothing": (Protection.PRIVACY, 128, False, False),
    "only integrity is agreed on": (Protection.INTEGRITY, 128, True, False),
}


@pytest.mark.parametrize(
    ("chosen", "key_bits", "offered", "taken"), AES_WHERE.values(), ids=AES_WHERE
)
async def test_aes_takes_the_place_of_the_layer_where_both_sides_have_it(
    tmp_path: Path, chosen: Protection, key_bits: int, *, offered: bool, taken: bool
) -> None:
    """AES adds no byte to what is sent; the layer adds a length and a signature to each token."""
    call_with(chosen, aes=offered)
    asked = READ[:-1]  # without its last byte it is not answered
    async with (
        block_client.node(tmp_path / "a", access=keys(chosen, key_bits=key_bits)) as node,
        block_client.relay(node.place) as (between, passed),
    ):
        peer = await block_client.connect(between.port, everything())
        passed.clear()
        await peer.send(asked, seconds=SECONDS)
        await until(lambda: len(passed) >= len(asked))
        assert (len(passed) == len(asked)) == taken
        assert (asked in passed) == (chosen is Protection.INTEGRITY)
        block_client.hang_up()
        await block_client.idle(node)


BAD_KEYS: Final = {
    "a short start": (pb.CipherOptionProto(inIv=b"short"), "no keys of AES"),
    "a long start": (pb.CipherOptionProto(outIv=bytes(17)), "no keys of AES"),
    "a key that the layer has not sealed": (pb.CipherOptionProto(inKey=bytes(40)), "next one"),
}


@pytest.mark.parametrize(("bad", "why"), BAD_KEYS.values(), ids=BAD_KEYS)
async def test_keys_that_are_none_end_the_handshake(bad: pb.CipherOptionProto, why: str) -> None:
    """Of a DataNode that has the token's password, and answers with something else."""

    async def pose(peer: Peer) -> None:
        access = keys(Protection.PRIVACY)
        assert await peer.read(len(MAGIC), seconds=SECONDS) == MAGIC
        acceptor = DigestAcceptor(service(ALL), access.password)
        for _ in range(2):
            outcome = acceptor.step((await next_step(peer, seconds=SECONDS)).payload)
            said = Step(status=Step.SUCCESS, payload=outcome.token)
            if isinstance(outcome, Proven):
                assert outcome.layer is not None
                option = fresh_keys(128)
                option.inKey, option.outKey = map(outcome.layer.wrap, (option.inKey, option.outKey))
                option.MergeFrom(bad)
                said.cipherOption.append(option)
            await peer.send_message(said, seconds=SECONDS)
        peer.close()

    call_with(Protection.PRIVACY, aes=True)
    serving = list[asyncio.Task[None]]()
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(
            NO_BUDGET, lambda made: serving.append(asyncio.create_task(pose(Peer(made))))
        ),
        "127.0.0.1", 0,
    )  # fmt: skip
    async with server:
        to = Place(server.sockets[0].getsockname()[1]).info.id
        with pytest.raises(MalformedTransfer, match=why):
            await connect(to, everything(), key=None, seconds=SECONDS)
        await asyncio.gather(*serving)
