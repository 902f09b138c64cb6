"""Serves the operations of WebHDFS on the bytes of files, as a client of HDFS; with aiohttp.

See docs/webhdfs.md.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

import structlog
from aiohttp import ClientPayloadError, web

from files.checksum import file_checksum
from files.errors import FilesError, Refused
from files.held_tokens import login_by
from files.namenodes import Namenodes
from files.pipeline import WriteLimits
from files.read import Reader
from files.write import Writer
from ha.conf import topology
from ha.conf.configuration import Configuration
from ha.conf.keys import datanode as keys
from ha.conf.keys import security as keys_security
from ha.conf.keys import web as keys_web
from ha.daemon.http.hosts import allowed_hosts
from ha.record import dataclass, field
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import ACCESS_CONTROL, IO_EXCEPTION, RETRIABLE, UNSUPPORTED_OPERATION
from ha.rpc.sasl.initiation import LoginToken
from ha.security.access_control import AccessControl
from ha.security.rights import CLIENT_PROTOCOL, WEBHDFS
from hadoop.proto.hdfs_types_pb2 import TokenProto
from hadoop.webhdfs import params, refusals
from hadoop.webhdfs.callers import BYTES, HEADERS, Actor, actor_of, refused, shown, target_of, wait
from hadoop.wire.byte_budget import ByteBudget

log = structlog.get_logger()

MOST_TRANSFERS: Final = 128
BUFFER_BYTES: Final = 64 * 1024 * 1024
"""What all downloads together may hold of packets that have come, but for 64 KiB each."""
BODY_SECONDS: Final = 60.0
"""For the next bytes of an upload, and in all for what ``LEAST_BYTES`` a second do not explain."""
LEAST_BYTES: Final = 1024
_BODY_BYTES: Final = 64 * 1024
"""Of a body at once: all that has come, six times as much, would be held while it is written."""
WINDOWS_BYTES: Final = 24 * 1024 * 1024
"""What all uploads together send ahead of acknowledgements, each its share, but one packet."""
_MOST_WINDOW_BYTES: Final = 1024 * 1024
_PACKET_BYTES: Final = 128 * 1024
_PERMISSION: Final = 0o644
_PARAMS: Final = {
    "GET OPEN": ("getBlockLocations", "offset length buffersize"),
    "GET GETFILECHECKSUM": ("getBlockLocations", ""),
    "PUT CREATE": (
        "create",
        "overwrite createflag createparent permission unmaskedpermission replication blocksize "
        "buffersize",
    ),
    "POST APPEND": ("append", "buffersize"),
}
"""Each operation: the call whose right it needs, and its parameters."""
_HINTS: Final = frozenset({"CREATE", "OVERWRITE", "NO_LOCAL_WRITE", "NO_LOCAL_RACK"})

OpenNamenodes = Callable[[str, LoginToken | None], Namenodes]
"""Returns the NameNodes of the configuration, for a user, who may be proved by a token."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request that was read and let in."""

    op: str
    path: str
    address: str
    values: dict[str, Any]


@dataclass(slots=True)
class DataRoutes:
    """WebHDFS of one DataNode.

    A redirect may name NameNodes as ``nameservice`` or by an address that is ``known``; those of
    the configuration are called, never an address from a request.  ``names``: under which this
    DataNode may be asked.  ``takes_tokens``: delegation tokens prove callers to the NameNodes.
    """

    namenodes: OpenNamenodes
    nameservice: str
    known: frozenset[str]
    access: AccessControl | None
    names: frozenset[str]
    user_pattern: str = params.USER_PATTERN
    takes_tokens: bool = False
    most_transfers: int = MOST_TRANSFERS
    body_seconds: float = BODY_SECONDS
    windows_bytes: int = WINDOWS_BYTES
    _transfers: int = 0
    _active: int = 0
    """The place of the NameNode that answered last; one that is gone costs each request seconds."""
    _budget: ByteBudget = field(default_factory=lambda: ByteBudget(BUFFER_BYTES))

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get(WEBHDFS, self._handle, allow_head=False),
            web.put(WEBHDFS, self._handle, expect_handler=wait),
            web.post(WEBHDFS, self._handle, expect_handler=wait),
        ]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        answer: web.StreamResponse
        if self._transfers >= self.most_transfers:
            answer = refused(RETRIABLE, f"{self._transfers} transfers are under way here")
            answer.set_status(HTTPStatus.SERVICE_UNAVAILABLE)
        else:
            self._transfers += 1
            try:
                answer = await self._answer(request)
            except Refused as error:
                answer = refused(error.java_class, error.reason)
            except RemoteFault as error:
                answer = refused(error.java_class, error.message)
            except FilesError as error:
                answer = refused(IO_EXCEPTION, str(error))
            except (ConnectionError, ClientPayloadError, TimeoutError) as error:
                log.info(
                    "webhdfs.broken_off", peer=request.remote, path=request.path, why=str(error)
                )
                answer = refused(IO_EXCEPTION, "the body broke off, or came too slowly")
            except Exception as error:
                log.exception("webhdfs.failed", peer=request.remote, path=request.path)
                answer = refused(refusals.RUNTIME_EXCEPTION, f"{type(error).__name__}: {error}")
            finally:
                self._transfers -= 1
        answer.force_close()  # its next request may have names that aiohttp does not read
        return answer

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path, query = target_of(request, self.names)
        holder_of = _owner if self.takes_tokens else None
        actor = await actor_of(request, query, self.access, self.user_pattern, holder_of)
        op = str(params.value_of("op", query)).upper()
        row = _PARAMS.get(f"{request.method} {op}")
        if row is None:
            raise RemoteFault(
                UNSUPPORTED_OPERATION,
                f"{request.method} op={op} is not served by a DataNode: ask a NameNode",
            )
        if self.access is not None and actor.caller is not None:
            refusal = self.access.refusal(actor.caller, "webhdfs", CLIENT_PROTOCOL, row[0])
            if refusal is not None:
                raise RemoteFault(ACCESS_CONTROL, refusal.reason)
        address = params.value_of("namenoderpcaddress", query)
        if address != self.nameservice and address not in self.known:
            raise refusals.invalid_value(
                "namenoderpcaddress", f"{address} is no NameNode of this DataNode's configuration"
            )
        demanding = self.access is not None and self.access.policy.demands_certificates
        if demanding and actor.token is None:
            raise RemoteFault(ACCESS_CONTROL, refusals.NOT_WITHOUT_TOKEN)
        asked = _Asked(op, path, address, params.values_of(op, row[1], query))
        async with self._of(actor) as namenodes:
            match op:
                case "OPEN":
                    return await self._open(request, asked, namenodes)
                case "GETFILECHECKSUM":
                    found = await file_checksum(namenodes, path)
                    told = {"algorithm": found.algorithm, "bytes": found.raw.hex()}
                    return shown({"FileChecksum": {**told, "length": len(found.raw)}})
                case "CREATE":
                    return await self._create(request, asked, namenodes)
                case _:
                    return await self._append(request, asked, namenodes)

    @asynccontextmanager
    async def _of(self, actor: Actor) -> AsyncIterator[Namenodes]:
        """Give the NameNodes for a user, the one that answered last first."""
        token = actor.token
        proof = None if token is None else login_by(token.identifier, token.password)
        async with self.namenodes(actor.user, proof) as namenodes:
            began = namenodes.current = self._active
            try:
                yield namenodes
            finally:
                if namenodes.current != began:  # a long transfer does not bring a dead one back
                    self._active = namenodes.current

    async def _open(
        self, request: web.Request, asked: _Asked, namenodes: Namenodes
    ) -> web.StreamResponse:
        """Send a range of a file; an error after the headers cuts the connection off."""
        offset, length = asked.values["offset"], asked.values["length"]
        reader = await Reader.open(namenodes, asked.path, offset=offset, budget=self._budget)
        if offset > reader.length:
            raise RemoteFault(
                IO_EXCEPTION, f"Offset={offset} out of the range [0, {reader.length}]; {asked.path}"
            )
        left = reader.length - offset
        answer = web.StreamResponse(headers={**HEADERS, "Content-Type": BYTES})
        answer.content_length = left if length is None else min(left, length)
        answer.force_close()
        is_whole = False
        async with aclosing(reader.read(offset, answer.content_length)) as parts:
            first = await anext(parts, b"")  # what cannot be read at all is refused in words
            try:
                await answer.prepare(request)
                await answer.write(first)
                async for part in parts:
                    await answer.write(part)
                is_whole = True
            finally:
                if not is_whole and request.transport is not None:
                    log.warning("webhdfs.download_cut_off", peer=request.remote, path=asked.path)
                    request.transport.abort()
        return answer

    async def _create(
        self, request: web.Request, asked: _Asked, namenodes: Namenodes
    ) -> web.Response:
        """Take in a new file; if that fails, no file stays."""
        values, flags = asked.values, set(asked.values["createflag"])
        if flags - _HINTS:
            raise RemoteFault(
                UNSUPPORTED_OPERATION,
                f"createflag={','.join(sorted(flags - _HINTS))} is not served",
            )
        permission = values["permission"]
        writer = await Writer.create(
            namenodes,
            asked.path,
            overwrite=values["overwrite"] or "OVERWRITE" in flags,
            create_parent=values["createparent"],
            permission=_PERMISSION if permission is None else permission,
            unmasked=values["unmaskedpermission"],
            replication=values["replication"] or 0,
            block_size=values["blocksize"] or 0,
            limits=self._limits(),
        )
        async with _ended_by(writer.discard, request.remote, asked.path):
            await self._take_in(request, writer)
            await writer.close()
        where = f"hdfs://{asked.address}{quote(asked.path)}"
        return web.Response(status=HTTPStatus.CREATED, headers={**HEADERS, "Location": where})

    async def _append(
        self, request: web.Request, asked: _Asked, namenodes: Namenodes
    ) -> web.Response:
        """Take in bytes behind a file's end; if that fails, it is closed with those that came."""
        writer = await Writer.append(namenodes, asked.path, limits=self._limits())
        async with _ended_by(writer.close, request.remote, asked.path):
            await self._take_in(request, writer)
            await writer.close()
        return web.Response(headers=HEADERS)

    def _limits(self) -> WriteLimits:
        """Return those of an upload; its window becomes less while there are more transfers."""
        return WriteLimits(
            window_bytes=lambda: min(_MOST_WINDOW_BYTES, self.windows_bytes // self._transfers),
            packet_bytes=_PACKET_BYTES,
        )

    async def _take_in(self, request: web.Request, writer: Writer) -> None:
        """Write the body of a request; raise ``TimeoutError`` if it comes too slowly."""
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        loop = asyncio.get_running_loop()
        waited, count = 0.0, 0
        while True:
            began, slack = loop.time(), count / LEAST_BYTES - waited
            async with asyncio.timeout(self.body_seconds + min(0.0, slack)):
                data = await request.content.read(_BODY_BYTES)
            if not data:
                return
            waited, count = waited + loop.time() - began, count + len(data)
            await writer.write(data)


async def _owner(token: TokenProto) -> str:
    """Return the owner in a token, which proves nothing here: the NameNode judges it."""
    try:
        return login_by(token.identifier, token.password).owner
    except (ValueError, IndexError) as problem:
        raise refusals.invalid_value("delegation", f"it names no owner: {problem}") from problem


@asynccontextmanager
async def _ended_by(
    ending: Callable[[], Awaitable[None]], peer: str | None, path: str
) -> AsyncIterator[None]:
    """Bring an upload that fails to its end, whatever it fails by."""
    try:
        yield
    except BaseException as failure:
        log.warning("webhdfs.upload_failed", peer=peer, path=path, why=str(failure))
        try:
            async with asyncio.timeout(BODY_SECONDS):
                await ending()
        except (FilesError, TimeoutError) as problem:
            log.warning("webhdfs.upload_left", peer=peer, path=path, why=str(problem))
        raise


def data_routes(conf: Configuration, access: AccessControl | None) -> Sequence[web.RouteDef]:
    """Return the routes of a DataNode by its configuration; none where WebHDFS is switched off."""
    if not conf.get(keys_web.WEBHDFS):
        return ()
    nameservice = topology.nameservice_of(conf)
    known = frozenset(str(one.rpc) for one in topology.namenodes(conf, nameservice))
    more = [*conf.get(keys_web.WEB_HOSTS), conf.get(keys.HOST_NAME) or ""]
    return DataRoutes(
        namenodes=lambda user, token: Namenodes.of(conf, user=user, token=token),
        nameservice=nameservice,
        known=known,
        access=access,
        names=allowed_hosts(conf.get(keys.HTTP).host, socket.gethostname(), more),
        user_pattern=conf.get(keys_web.WEBHDFS_USERS),
        takes_tokens=conf.get(keys_security.AUTHENTICATION).lower() == "kerberos"
        or conf.get(keys_security.TOKEN_ALWAYS),
    ).routes()
