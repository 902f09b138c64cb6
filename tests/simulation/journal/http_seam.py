"""Takes the place of aiohttp's client under the product's downloads; cuts and corrupts them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import aiohttp

from tests.simulation.engine.clock import PROCESS, Process
from tests.simulation.engine.network import Network


@dataclass(frozen=True, slots=True)
class Page:
    """What a node answers to a GET."""

    status: int
    reason: str
    body: bytes = b""


class HttpServer(Protocol):
    """A machine that may serve segments, or be down."""

    def get(self, query: dict[str, str], respond: Callable[[Page | None], None]) -> None:
        """Serve one request; None if no server listens there."""


_FIRST_BYTE_THAT_IS_CHECKED = 8
"""The header of a segment file has no checksum, so that a flip in it is beyond any receiver."""


class SimulatedSession:
    """aiohttp.ClientSession as far as the journal uses it."""

    def __init__(
        self, network: Network, servers: dict[str, HttpServer], timeout: aiohttp.ClientTimeout
    ) -> None:
        process = PROCESS.get()
        assert process is not None, "a session belongs to a process"
        self._process = process
        self._network = network
        self._servers = servers
        self._timeout = timeout

    @property
    def timeout(self) -> aiohttp.ClientTimeout:
        """The deadlines of a download that has none of its own."""
        return self._timeout

    def get(
        self,
        url: str,
        allow_redirects: bool = True,
        timeout: aiohttp.ClientTimeout | None = None,
    ) -> "_Getting":
        del allow_redirects
        machine = urlsplit(url).hostname or ""
        patience = (timeout or self._timeout).sock_read or 60.0
        return _Getting(
            self._network, self._process, self._servers[machine], machine, url, patience
        )

    async def close(self) -> None: ...

    async def __aenter__(self) -> "SimulatedSession":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class _Getting:
    """``async with session.get(...)``; then it is the response."""

    def __init__(
        self,
        network: Network,
        process: Process,
        server: HttpServer,
        machine: str,
        url: str,
        patience: float,
    ) -> None:
        self._network = network
        self._process = process
        self._server = server
        self._machine = machine
        self._query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        self._patience = patience
        self._page: asyncio.Future[Page | None]
        self.status = 0
        self.reason = ""
        self.content_length: int | None = None
        self.content = self

    async def __aenter__(self) -> "_Getting":
        self._page = asyncio.get_running_loop().create_future()
        here, network = self._process.machine, self._network
        what = f"GET {self._query.get('segmentTxId')}"

        def respond(page: Page | None) -> None:
            network.post(
                (self._machine, here),
                f"answer {what}",
                lambda: self._arrive(page),
                lost=lambda: self._arrive(None),
                answer=True,
            )

        network.post(
            (here, self._machine),
            what,
            lambda: self._server.get(self._query, respond),
            lost=lambda: self._arrive(None),
        )
        async with asyncio.timeout(self._patience):
            page = await self._page
        if page is None:
            raise aiohttp.ClientConnectionError("Connection reset by peer (simulated)")
        self.status, self.reason, self.content_length = page.status, page.reason, len(page.body)
        return self

    async def __aexit__(self, *exc: object) -> None: ...

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        async for piece in self._pieces(size):
            yield piece

    async def iter_chunks(self) -> AsyncIterator[tuple[bytes, bool]]:
        async for piece in self._pieces(1 << 20):
            yield piece, True

    async def _pieces(self, size: int) -> AsyncIterator[bytes]:
        page = self._page.result()
        assert page is not None
        body, faults = page.body, self._network.faults
        place = f"{self._machine}>{self._process.machine}"
        rng = faults.random("pieces", place, self._network.loop.steps)
        if body and (name := faults.strikes("http-flip", place)):
            at = faults.random(name).randrange(_FIRST_BYTE_THAT_IS_CHECKED, len(body))
            self._network.trace.add("net", f"{place} flips a bit of byte {at}", name)
            body = (
                body[:at]
                + bytes((body[at] ^ 1 << faults.random(name).randrange(8),))
                + body[at + 1 :]
            )
        cut = len(body)
        if body and (name := faults.strikes("http-cut", place)):
            cut = faults.random(name).randrange(len(body))
            self._network.trace.add("net", f"{place} cuts after {cut} bytes", name)
        position = 0
        while position < cut:
            end = min(cut, position + min(size, rng.choice((7, 60, 400, 4000))))
            await asyncio.sleep(0.0005)
            yield body[position:end]
            position = end
        if cut < len(body):
            raise aiohttp.ClientPayloadError("Response payload is not completed (simulated)")

    def _with_a_flip(self, body: bytes, place: str, name: str) -> bytes:
        rng, flipped = self._network.faults.random(name), bytearray(body)
        at = rng.randrange(_FIRST_BYTE_THAT_IS_CHECKED, len(body))
        flipped[at] ^= 1 << rng.randrange(8)
        self._network.trace.add("net", f"{place} flips a bit of byte {at}", name)
        return bytes(flipped)

    def _arrive(self, page: Page | None) -> None:
        if not self._page.done():
            self._page.set_result(page)


def session_maker(network: Network, servers: dict[str, HttpServer]) -> Any:  # noqa: ANN401
    """Return what takes the place of ``aiohttp.ClientSession``."""

    def make(
        *,
        timeout: aiohttp.ClientTimeout,
        auto_decompress: bool = True,
        connector: aiohttp.BaseConnector | None = None,
        middlewares: Sequence[aiohttp.ClientMiddlewareType] = (),
    ) -> SimulatedSession:
        del auto_decompress, connector, middlewares  # no server here asks for a ticket
        return SimulatedSession(network, servers, timeout)

    return make
