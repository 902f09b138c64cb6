"""Any bytes at all in place of a handshake, by block tokens and by data encryption keys."""

import random
from pathlib import Path

import pytest

from datanode.transfers.block_access import BlockAccess
from ha.security.sasl.mechanism import Protection
from hadoop.proto import data_transfer_pb2 as pb
from hadoop.wire.ciphered import AES
from hadoop.wire.handshake import Step, data_user
from hadoop.wire.packets import encode_message
from tests.datanode import block_client
from tests.datanode.stores import block
from tests.datanode.test_block_tokens import DATA
from tests.datanode.test_encryption import data_key, encrypting
from tests.datanode.test_handshake import ALL, BEGIN, call_with, everything, keys, sent


async def any_bytes(count: int, folder: Path, seed: int, access: BlockAccess, user: bytes) -> None:
    """Send handshakes of a user, each altered in a few places; then a real one still works."""
    chance = random.Random(seed)
    proof = Step(
        status=Step.SUCCESS,
        payload=b'username="%s"' % user,
        cipherOption=[pb.CipherOptionProto(suite=AES, inKey=b"key")],
    )
    async with block_client.node(folder, access=access) as node:
        for _ in range(count):
            good = bytearray(BEGIN + encode_message(proof))
            for _ in range(chance.randrange(4)):
                at = chance.randrange(len(good))
                match chance.randrange(3):
                    case 0:
                        good[at] = chance.randrange(256)
                    case 1:
                        del good[at : at + chance.randrange(1, 9)]
                    case _:
                        good[at:at] = chance.randbytes(chance.randrange(1, 9))
                if not good:
                    break
            await sent(node.place, bytes(good))
        await block_client.idle(node)
        await block_client.write_whole([node.place], block(), DATA, everything())


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("by_key", [False, True])
async def test_none_get_past_the_handshake_or_break_it(
    tmp_path: Path, count: int, *, by_key: bool
) -> None:
    if by_key:
        block_client.encrypt_by(data_key())
        user = data_user(data_key()).encode()
        await any_bytes(count, tmp_path, 3, encrypting(key_bits=128), user)
    else:
        call_with(Protection.PRIVACY, aes=True)
        await any_bytes(count, tmp_path, 1, keys(*ALL, key_bits=128), b"AA==")
