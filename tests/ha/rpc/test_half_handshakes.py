"""Half a handshake costs a place that the next one takes, and none is begun for it."""

import asyncio
import ssl
from contextlib import suppress
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from ha.security.caller import Role
from ha.security.first_byte import TLS_FIRST_BYTE
from tests.ha.rpc.test_tls import zkfc_server
from tests.ha.rpc.wire import eventually
from tests.ha.security.authority import Authority

SECONDS = 30.0


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def places() -> float:
    return REGISTRY.get_sample_value("nnha_door_places", {"door": "opening"}) or 0.0


async def test_a_handshake_in_pieces_is_begun_when_its_first_record_is_whole(
    authority: Authority,
) -> None:
    own, peer = authority.holder(Role.ZKFC, "nn1"), authority.holder(Role.ZKFC, "nn2")

    async with zkfc_server(own) as (server, port):
        coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
        ours = peer.client(Role.ZKFC).wrap_bio(coming, going, server_hostname="127.0.0.1")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)

        async def exchange() -> None:
            said = going.read()
            while said:
                piece, said = said[:97], said[97:]
                writer.write(piece)
                await writer.drain()
            if (answer := await reader.read(65536)) == b"":
                coming.write_eof()
            coming.write(answer)

        async with asyncio.timeout(30):
            while True:
                try:
                    ours.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    await exchange()
            writer.write(going.read())
            await eventually(lambda: server.connection_count == 1)
        writer.close()


CUT_SHORT = {
    "nothing": b"",
    "one byte": bytes([TLS_FIRST_BYTE]),
    "half a record": bytes([TLS_FIRST_BYTE, 3, 1, 2, 0, 1]),
}


@pytest.mark.parametrize("case", CUT_SHORT)
async def test_who_leaves_in_the_middle_of_a_record_leaves_no_place(
    case: str, authority: Authority
) -> None:
    own = authority.holder(Role.ZKFC, "nn1")

    async with zkfc_server(own) as (_, port):
        before = places()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(CUT_SHORT[case])
        await eventually(lambda: places() == before + 1)
        names = {task.get_name() for task in asyncio.all_tasks()}
        assert "open a connection" not in names, "half a record costs no handshake"
        writer.write_eof()
        async with asyncio.timeout(30):
            with suppress(ConnectionResetError):  # bytes that the server has not read
                assert await reader.read() == b""
        await eventually(lambda: places() == before)
        writer.close()
