"""A name server of the lab: it answers by a mode that may change while it runs.

right   addresses of the hosts, and that other names do not exist
slow    the same, three seconds late
silent  nothing
wrong   that no name exists
"""

import asyncio
import socket
import struct
import sys
from pathlib import Path
from typing import Final

from tests.hosts.lab import ADDRESSES

SLOW_SECONDS: Final = 3.0
_NO_SUCH_NAME: Final = 3
_ADDRESS: Final = 1
_HEADER: Final = struct.Struct("!6H")


def answer(query: bytes, mode: str) -> bytes:
    """Return the answer to a query of one question (RFC 1035)."""
    number, flags, *_ = _HEADER.unpack_from(query)
    labels, at = [], _HEADER.size
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode())
        at += 1 + query[at]
    question = query[_HEADER.size : at + 5]
    (kind,) = struct.unpack_from("!H", query, at + 1)
    known = None if mode == "wrong" else ADDRESSES.get(".".join(labels))
    found = known is not None and kind == _ADDRESS
    code = 0 if known is not None else _NO_SUCH_NAME
    head = _HEADER.pack(number, 0x8480 | (flags & 0x0100) | code, 1, int(found), 0, 0)
    record = b"\xc0\x0c" + struct.pack("!HHIH", _ADDRESS, 1, 60, 4)
    return head + question + (record + socket.inet_aton(known) if known and found else b"")


class _Server(asyncio.DatagramProtocol):
    def __init__(self, mode: Path) -> None:
        self._mode = mode
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        mode = self._mode.read_text().strip()
        if mode == "silent":
            return
        late = SLOW_SECONDS if mode == "slow" else 0.0
        asyncio.get_running_loop().call_later(late, self._send, answer(data, mode), addr)

    def _send(self, said: bytes, to: tuple[str, int]) -> None:
        assert self._transport is not None
        self._transport.sendto(said, to)


async def main(address: str, mode: str, ready: str) -> None:
    """Answer until the process is ended."""
    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(lambda: _Server(Path(mode)), local_addr=(address, 53))
    Path(ready).touch()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
