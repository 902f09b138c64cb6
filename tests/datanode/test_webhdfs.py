"""WebHDFS on a DataNode: uploads, downloads and checksums over real sockets."""

import asyncio
import hashlib
import io
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

import aiohttp
import pytest
from google.protobuf.message import Message
from yarl import URL

from datanode.webhdfs.route import DataRoutes
from files.errors import NotFound
from files.namenodes import Namenodes
from ha.conf.keys.security import Mode
from ha.conf.own_user import own_user
from ha.conf.topology import HostPort
from ha.daemon.http.endpoint import Endpoint
from ha.rpc.protocol import Call
from ha.rpc.sasl.initiation import LoginToken
from ha.security.access_control import AccessControl
from hadoop.blocks import Checksum
from hadoop.wire.checksums import checksums_of
from tests.files.cuts import Door, doors
from tests.files.world import MIB, Handle, World, folder_of_bobs, get, mode_of, noise, put, world
from tests.ha.security.test_unproven import Lines
from tests.namenode_sim.datanode_protocol.served import seen

DATA = noise(2 * MIB + 4321)
KNOWN = "one:8020"
NAMED = "user.name=hdfs&namenoderpcaddress=ns1"
Body: TypeAlias = bytes | io.BytesIO | AsyncIterator[bytes]


@dataclass(frozen=True, slots=True)
class Answered:
    status: int
    headers: Any
    body: bytes

    @property
    def refusal(self) -> tuple[int, str, str]:
        told = json.loads(self.body)["RemoteException"]
        return self.status, told["exception"], told["message"]


@dataclass(slots=True)
class Web:
    made: World
    port: int
    session: aiohttp.ClientSession
    asked_for: list[str]
    routes: DataRoutes

    async def ask(
        self, method: str, path: str, op: str, body: Body | None = None, **query: object
    ) -> Answered:
        given = {"op": op, "user.name": "hdfs", "namenoderpcaddress": "ns1", **query}
        given = {key.replace("__", "."): one for key, one in given.items() if one is not None}
        url = f"http://127.0.0.1:{self.port}/webhdfs/v1{quote(path)}?{urlencode(given)}"
        async with self.session.request(
            method, URL(url, encoded=True), data=body, expect100=body is not None
        ) as answer:
            return Answered(answer.status, answer.headers, await answer.read())


@asynccontextmanager
async def web(
    folder: Path,
    access: AccessControl | None = None,
    before: Sequence[HostPort] = (),
    **limits: float,
) -> AsyncIterator[Web]:
    async with world(folder) as made:
        asked_for: list[str] = []

        def namenodes(user: str, token: LoginToken | None) -> Namenodes:
            asked_for.append(user if token is None else f"{user} by {token.password!r}")
            first = before if user == "alice" else [made.address] * len(before)
            return Namenodes([*first, made.address], user=user, limits=made.client.limits)

        names = frozenset({"localhost"})
        routes = DataRoutes(namenodes, "ns1", frozenset({KNOWN}), access, names)
        for name, limit in limits.items():
            setattr(routes, name, limit)
        endpoint = Endpoint(status=dict, healthy=lambda: None, routes=routes.routes, access=access)
        port = await endpoint.start("127.0.0.1", 0)
        try:
            async with aiohttp.ClientSession() as session:
                yield Web(made, port, session, asked_for, routes)
        finally:
            await endpoint.stop()


async def test_a_file_goes_up_and_down(tmp_path: Path) -> None:
    async with web(tmp_path) as site:
        at = {"blocksize": MIB, "replication": 2, "permission": "640"}
        up = await site.ask("PUT", "/d/ä b", "CREATE", io.BytesIO(DATA), **at)
        assert (up.status, up.body) == (201, b"")
        assert up.headers["Location"] == "hdfs://ns1/d/%C3%A4%20b"
        down = await site.ask("GET", "/d/ä b", "OPEN")
        assert (down.status, down.body == DATA) == (200, True)
        assert down.headers["Content-Length"] == str(len(DATA))
        for offset, length in [(0, 0), (5, 10), (MIB - 1, 2), (len(DATA), 9), (7, len(DATA))]:
            part = await site.ask("GET", "/d/ä b", "OPEN", offset=offset, length=length)
            assert part.body == DATA[offset : offset + length]
        more = await site.ask("POST", "/d/ä b", "APPEND", b"more")
        assert (more.status, more.body) == (200, b"")
        assert await get(site.made.client, "/d/ä b") == DATA + b"more"
        assert set(site.asked_for) == {"hdfs"}


async def test_a_body_may_come_in_chunks(tmp_path: Path) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(DATA), 33_333):
            yield DATA[at : at + 33_333]

    async with web(tmp_path) as site:
        assert (await site.ask("PUT", "/f", "CREATE", chunks())).status == 201
        assert await get(site.made.client, "/f") == DATA
        assert (await site.ask("PUT", "/empty", "CREATE")).status == 201
        assert await get(site.made.client, "/empty") == b""


async def test_uploads_share_what_they_send_ahead(tmp_path: Path) -> None:
    """DataNodes take all packets and acknowledge none: each upload stops at its share."""
    silent = Door(0, after=10, stalls=True, reading=True)
    async with web(tmp_path, windows_bytes=800_000) as site, doors(site.made, silent):
        head = "&replication=1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99000000\r\n\r\n"
        for name in ("one", "two"):
            (await raw(site, f"PUT /webhdfs/v1/{name}?op=CREATE&{NAMED}{head}"))[1].write(DATA)

        def ahead() -> list[int]:
            return [path.stat().st_size for path in tmp_path.rglob("rbw/blk_*[0-9]")]

        await seen(lambda: len(ahead()) == 2 and min(ahead()) > 300_000)
        await put(site.made.client, "/small", b"")
        assert max(ahead()) <= 400_000


async def test_a_default_acl_takes_what_the_umask_has_not_cut(tmp_path: Path) -> None:
    async with web(tmp_path) as site:
        await folder_of_bobs(site.made.client, "/d")
        given = {"permission": "640", "unmaskedpermission": "666"}
        assert (await site.ask("PUT", "/d/f", "CREATE", b"x", **given)).status == 201
        assert await mode_of(site.made.client, "/d/f") == 0o664


REFUSED: dict[str, tuple[str, str, str, dict[str, object], tuple[int, str]]] = {
    "a file that is not there": ("GET", "/no", "OPEN", {}, (404, "FileNotFoundException")),
    "behind the end": ("GET", "/f", "OPEN", {"offset": 4}, (403, "IOException")),
    "before its start": ("GET", "/f", "OPEN", {"offset": -1}, (400, "IllegalArgumentException")),
    "no number": ("GET", "/f", "OPEN", {"length": "x"}, (400, "IllegalArgumentException")),
    "taken": ("PUT", "/f", "CREATE", {}, (403, "FileAlreadyExistsException")),
    "a directory": ("GET", "/", "OPEN", {}, (404, "FileNotFoundException")),
    "not theirs": (
        "PUT", "/new", "CREATE", {"user__name": "bob"}, (403, "AccessControlException")
    ),
    "no name": ("GET", "/f", "OPEN", {"user__name": "a b"}, (400, "IllegalArgumentException")),
    "for another": ("GET", "/f", "OPEN", {"doas": "bob"}, (403, "AuthorizationException")),
    "another NameNode": (
        "GET", "/f", "OPEN", {"namenoderpcaddress": "evil:8020"}, (400, "IllegalArgumentException")
    ),
    "no NameNode": (
        "PUT", "/new", "CREATE", {"namenoderpcaddress": None}, (400, "IllegalArgumentException")
    ),
    "one by its number": (
        "PUT", "/new", "CREATE", {"namenoderpcaddress": "127.0.0.1:1"},
        (400, "IllegalArgumentException"),
    ),
    "an operation of NameNodes": (
        "PUT", "/d", "MKDIRS", {}, (400, "UnsupportedOperationException")
    ),
    "the wrong method": ("PUT", "/f", "OPEN", {}, (400, "UnsupportedOperationException")),
    "a flag": (
        "PUT", "/new", "CREATE", {"createflag": "CREATE,LAZY_PERSIST"},
        (400, "UnsupportedOperationException"),
    ),
    "too small a block": ("PUT", "/new", "CREATE", {"blocksize": 512}, (403, "IOException")),
    "no file to append to": ("POST", "/no", "APPEND", {}, (404, "FileNotFoundException")),
    "no checksum of nothing": ("GET", "/no", "GETFILECHECKSUM", {}, (404, "FileNotFoundException")),
}  # fmt: skip


async def test_refusals(tmp_path: Path) -> None:
    async with web(tmp_path) as site:
        await put(site.made.client, "/f", b"abc")
        for name, (method, path, op, query, expected) in REFUSED.items():
            body = b"x" if method != "GET" else None
            answer = await site.ask(method, path, op, body, **query)
            assert answer.refusal[:2] == expected, f"{name}: {answer.body!r}"
        assert await get(site.made.client, "/f") == b"abc"
        with pytest.raises(NotFound):
            await get(site.made.client, "/new")
        assert (await site.ask("PUT", "/f", "CREATE", b"new", overwrite="true")).status == 201
        assert await get(site.made.client, "/f") == b"new"


async def raw(site: Web, text: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(text.encode())
    return reader, writer


async def until_gone(site: Web, path: str) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                await get(site.made.client, path)
            except NotFound:
                return
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("framing", ["Content-Length: 1000000", "Transfer-Encoding: chunked"])
async def test_a_body_that_breaks_off_leaves_no_file(tmp_path: Path, framing: str) -> None:
    async with web(tmp_path) as site:
        head = f"PUT /webhdfs/v1/f?op=CREATE&{NAMED} HTTP/1.1\r\nHost: localhost\r\n{framing}"
        _, writer = await raw(site, f"{head}\r\n\r\n")
        writer.write(b"%x\r\n" % 100_000 if "chunked" in framing else b"")
        writer.write(DATA[:100_000])
        await writer.drain()
        async with asyncio.timeout(30):
            while "addBlock" not in site.made.asked:
                await asyncio.sleep(0.01)
        writer.transport.abort()
        await until_gone(site, "/f")
        assert "complete" not in site.made.asked


async def test_an_append_that_breaks_off_closes_the_file(tmp_path: Path) -> None:
    async with web(tmp_path) as site:
        await put(site.made.client, "/f", DATA[:1000])
        head = f"POST /webhdfs/v1/f?op=APPEND&{NAMED} HTTP/1.1\r\nHost: localhost"
        reader, writer = await raw(
            site, f"{head}\r\nContent-Length: 9000\r\nExpect: 100-continue\r\n\r\n"
        )
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        completed = site.made.asked.count("complete")
        writer.write(DATA[1000:1500])
        await writer.drain()
        writer.transport.abort()
        async with asyncio.timeout(30):
            while site.made.asked.count("complete") == completed:
                await asyncio.sleep(0.01)
        found = await get(site.made.client, "/f")
        assert len(found) >= 1000
        assert DATA.startswith(found)
        assert (await site.ask("POST", "/f", "APPEND", b"x")).status == 200, "its lease has ended"


async def test_a_body_that_stalls_ends_in_time(tmp_path: Path) -> None:
    async with web(tmp_path, body_seconds=0.3) as site:
        head = f"PUT /webhdfs/v1/f?op=CREATE&{NAMED} HTTP/1.1\r\nHost: localhost"
        reader, writer = await raw(site, f"{head}\r\nContent-Length: 9\r\n\r\nx")
        async with asyncio.timeout(30):
            answer = await reader.readuntil(b"}}")
        assert answer.startswith(b"HTTP/1.1 403 ")
        assert b"came too slowly" in answer
        writer.transport.abort()
        with pytest.raises(NotFound):
            await get(site.made.client, "/f")


async def test_a_download_that_fails_never_looks_whole(tmp_path: Path) -> None:
    async with web(tmp_path) as site:
        await put(site.made.client, "/f", DATA)
        last = max(path.name for path in site.made.blocks())
        for path in site.made.blocks():
            content = bytearray(path.read_bytes())
            if path.name != last:
                content[-1] ^= 1
            path.write_bytes(content)
        with pytest.raises(aiohttp.ClientPayloadError):
            await site.ask("GET", "/f", "OPEN")
        whole = await site.ask("GET", "/f", "OPEN", offset=2 * MIB)
        assert whole.body == DATA[2 * MIB :]


async def test_no_words_take_the_place_of_bytes_that_cannot_be_read(tmp_path: Path) -> None:
    """A refusal behind the first bytes would be as long as those that are missing."""
    async with web(tmp_path) as site:
        await put(site.made.client, "/f", DATA[: MIB + 100])
        for path in site.made.blocks():
            if path.stat().st_size == 100:
                path.write_bytes(bytes(100))
        with pytest.raises(aiohttp.ClientPayloadError):
            await site.ask("GET", "/f", "OPEN")


async def test_what_cannot_be_read_at_all_is_refused_in_words(tmp_path: Path) -> None:
    async with web(tmp_path) as site:
        await put(site.made.client, "/f", DATA[:1000])
        for path in site.made.blocks():
            path.unlink()
        answer = await site.ask("GET", "/f", "OPEN")
        assert answer.refusal[:2] == (403, "IOException")
        assert "no replica of block" in answer.refusal[2]


async def test_a_namenode_that_is_gone_is_said(tmp_path: Path) -> None:
    async with web(tmp_path) as site:
        site.made.client.limits = replace(
            site.made.client.limits, connect_seconds=1, attempt_seconds=1, total_seconds=1
        )

        async def silent(handle: Handle, call: Call, request: Message) -> Message:
            await asyncio.Event().wait()
            return await handle(call, request)

        site.made.meddle = silent
        answer = await site.ask("PUT", "/f", "CREATE", b"x")
        assert answer.refusal[:2] == (403, "IOException")
        assert "may have been carried out" in answer.refusal[2]


CHECKSUMS = {
    # Of hadoop fs -checksum, with blocks of a MiB.
    0: ("MD5-of-0MD5-of-0CRC32", "70bc8f4b72a86921468bf8e8441dce51"),
    1000: ("MD5-of-0MD5-of-512CRC32C", None),
    2 * MIB + 1: ("MD5-of-2048MD5-of-512CRC32C", None),
}


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


async def test_a_checksum_has_hadoops_form(tmp_path: Path) -> None:
    async with web(tmp_path) as site:
        for size, (algorithm, md5) in CHECKSUMS.items():
            await put(site.made.client, f"/f{size}", DATA[:size])
            answer = await site.ask("GET", f"/f{size}", "GETFILECHECKSUM")
            told = json.loads(answer.body)["FileChecksum"]
            assert (told["algorithm"], told["length"], len(told["bytes"])) == (algorithm, 28, 56)
            assert md5 is None or told["bytes"] == "0" * 24 + md5
            if size > MIB:
                blocks = [DATA[at : min(size, at + MIB)] for at in range(0, size, MIB)]
                sums = b"".join(_md5(checksums_of(block, Checksum())) for block in blocks)
                assert told["bytes"][24:] == _md5(sums.ljust(64, bytes(1))).hex()


async def test_with_certificates_data_are_refused_with_what_serves_them(tmp_path: Path) -> None:
    access = AccessControl(Mode.PERMISSIVE, target="datanode", audit=Lines())
    access.policy = replace(access.policy, mode=Mode.STRICT, certificates=True)
    async with web(tmp_path, access) as site:
        answer = await site.ask("GET", "/f", "OPEN", user__name=own_user())
        assert answer.refusal[:2] == (403, "AccessControlException")
        assert answer.refusal[2].endswith("use nnha fs")
        assert site.asked_for == []


async def test_transfers_have_a_limit(tmp_path: Path) -> None:
    async with web(tmp_path, most_transfers=0) as site:
        answer = await site.ask("GET", "/f", "OPEN")
        assert answer.refusal[:2] == (503, "RetriableException")


async def test_a_body_that_trickles_ends_in_time(tmp_path: Path) -> None:
    async def trickle() -> AsyncIterator[bytes]:
        while True:
            yield b"x"
            await asyncio.sleep(0.05)

    async with web(tmp_path, body_seconds=0.4) as site, asyncio.timeout(30):
        answer = await site.ask("PUT", "/f", "CREATE", trickle())
        assert answer.refusal == (403, "IOException", "the body broke off, or came too slowly")
        with pytest.raises(NotFound):
            await get(site.made.client, "/f")


async def test_a_client_is_not_blamed_for_a_slow_namenode(tmp_path: Path) -> None:
    async def two() -> AsyncIterator[bytes]:
        yield DATA[:100]
        yield DATA[100:]

    async with web(tmp_path, body_seconds=0.4) as site:

        async def slowly(handle: Handle, call: Call, request: Message) -> Message:
            await asyncio.sleep(0.6 if call.method == "addBlock" else 0)
            return await handle(call, request)

        site.made.meddle = slowly
        assert (await site.ask("PUT", "/f", "CREATE", two())).status == 201
        assert await get(site.made.client, "/f") == DATA


async def test_a_connection_ends_with_its_answer(tmp_path: Path) -> None:
    async with web(tmp_path) as site:
        for op in ("OPEN", "GETFILECHECKSUM"):
            await put(site.made.client, "/f", b"abc", overwrite=True)
            answer = await site.ask("GET", "/f", op)
            assert answer.headers["Connection"] == "close"
