"""Serves WebHDFS: reads a request, asks who may, calls the handler of RPC, answers; with aiohttp.

See docs/webhdfs.md.
"""

import json
import math
import secrets
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final

import structlog
from aiohttp import web
from google.protobuf.message import Message

from ha.record import dataclass, field, replace
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import CLIENT_PROTOCOL
from ha.rpc.protocol import Call, RpcProtocol
from ha.security.access_control import AccessControl
from ha.security.caller import Method
from ha.security.rights import CLIENT_PROTOCOL as FACE
from ha.security.rights import WEBHDFS
from hadoop.proto.hdfs_types_pb2 import TokenProto
from hadoop.webhdfs import callers, params, refusals, token_text
from namenode_sim.client_protocol import table
from namenode_sim.client_protocol.words.errors import FsError, denied, invalid_path, not_found
from namenode_sim.client_protocol.words.model import Scene
from namenode_sim.client_protocol.words.paths import is_valid_name
from namenode_sim.webhdfs import answers, redirects
from namenode_sim.webhdfs.answers import Asked
from namenode_sim.webhdfs.operations import Listing, NotServed, Operation, Redirect, asked_for

log = structlog.get_logger()

REUSED_SECONDS: Final = 600.0
"""For how long a caller is given the same token; at most for a quarter of the time it lasts."""
MOST_GIVEN: Final = 10_000


@dataclass(frozen=True, slots=True)
class WebHdfsRoutes:
    """WebHDFS of one NameNode.

    ``protocol`` is ClientProtocol as RPC serves it, ``scene`` gives what a call may look at.
    ``names``: under which it may be asked.  ``address`` is how DataNodes reach the NameNodes: the
    nameservice, or host and port.
    """

    protocol: RpcProtocol
    scene: Callable[[Call], Scene]
    access: AccessControl | None
    names: frozenset[str]
    address: str
    user_pattern: str = params.USER_PATTERN
    holder_of: callers.HolderOf | None = None
    """Believes delegation tokens; None: they count for nothing."""
    _given: dict[tuple[str, str], tuple[float, TokenProto]] = field(default_factory=dict)
    """By user and the user that acts for it: when it was given its last token, and that."""

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get(WEBHDFS, self._handle, allow_head=False),
            web.put(WEBHDFS, self._handle, expect_handler=callers.wait),
            web.post(WEBHDFS, self._handle, expect_handler=callers.wait),
            web.delete(WEBHDFS, self._handle),
        ]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        answer: web.StreamResponse
        try:
            answer = await self._answer(request)
        except (FsError, RemoteFault) as error:
            answer = callers.refused(error.java_class, error.message)
        except Exception as error:
            # The query may hold a token, which is a secret.
            log.exception("webhdfs.failed", peer=request.remote, path=request.path)
            answer = callers.refused(refusals.RUNTIME_EXCEPTION, f"{type(error).__name__}: {error}")
        answer.force_close()  # its next request may have names that aiohttp does not read
        return answer

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path, query = callers.target_of(request, self.names)
        actor = await callers.actor_of(
            request, query, self.access, self.user_pattern, self.holder_of
        )
        client, caller = f"DFSClient_{secrets.randbits(63)}", actor.caller
        row, asked = asked_for(request.method, query, path, actor.user, client)
        if self.access is not None and caller is not None:
            refusal = self.access.refusal(caller, "webhdfs", FACE, row.call)
            if refusal is not None:
                raise denied(refusal.reason)
        proof = Method.SIMPLE if caller is None else caller.method
        call = _Caller(self, actor, request.remote or "", proof)
        match row:
            case NotServed():
                raise FsError(row.java_class, f"{asked.op} is not served: {row.why}")
            case Listing():
                return await _stream(request, asked, call)
            case Redirect():
                return await self._sent_on(request, asked, row, call)
            case Operation():
                if asked.values.get("replication", 1) is None:  # SETREPLICATION's default
                    own = {"replication": call.scene().settings.replication}
                    asked = replace(asked, values={**asked.values, **own})
                answer = await call.send(row.call, row.request(asked))
                return callers.shown(row.answer(answer, asked))

    async def _sent_on(
        self, request: web.Request, asked: Asked, row: Redirect, call: "_Caller"
    ) -> web.Response:
        """Send a caller on to a DataNode; the NameNode checks as much as Hadoop's does."""
        if not is_valid_name(asked.path):
            raise invalid_path(asked.path)
        demanding = self.access is not None and self.access.policy.demands_certificates
        if demanding and not self._may_have_token(call):
            raise denied(refusals.NOT_WITHOUT_TOKEN)
        node = None
        if row.looks:
            info = await call("getFileInfo", src=asked.path)
            if not info.HasField("fs"):
                raise not_found(f"File {asked.path} not found.")
            offset = redirects.checked_offset(asked, info.fs)
            found = await call("getBlockLocations", src=asked.path, offset=offset, length=1)
            node = redirects.with_replica(asked, call.scene(), found.locations)
        else:
            await call("getServerDefaults")
        node = node or redirects.to_write_to(asked, call.scene())
        secure = request.transport is not None and bool(
            request.transport.get_extra_info("ssl_object")
        )
        own = {**await self._proof(call), "namenoderpcaddress": self.address}
        where = redirects.location(asked, node, own, secure=secure)
        if asked.values["noredirect"]:
            return callers.shown({"Location": where})
        return web.Response(
            status=HTTPStatus.TEMPORARY_REDIRECT,
            headers={**callers.HEADERS, "Location": where, "Content-Type": callers.BYTES},
        )

    def _may_have_token(self, call: "_Caller") -> bool:
        return self.holder_of is not None and call.proof is not Method.SIMPLE

    async def _proof(self, call: "_Caller") -> Mapping[str, str]:
        """Return the parameter that lets a DataNode act for the caller: a token, or the name."""
        if not self._may_have_token(call):
            return {"user.name": call.actor.user}
        token = call.actor.token or await self._given_token(call)
        return {"delegation": token_text.encoded(token)}

    async def _given_token(self, call: "_Caller") -> TokenProto:
        """Return a token for a caller that shows none (NamenodeWebHdfsMethods does so, too).

        Each new one is an edit, and a user may have a limited number of them: one that it was given
        lately does as well, unless it has been cancelled.
        """
        key, now = (call.actor.user, call.actor.real), time.monotonic()
        lasts = min(REUSED_SECONDS, call.scene().settings.tokens.renewal_ms / 4000)
        made, token = self._given.get(key, (-math.inf, TokenProto()))
        if now - made < lasts and await self._is_good(token):
            return token
        found: TokenProto = (await call("getDelegationToken", renewer=call.actor.user)).token
        if len(self._given) >= MOST_GIVEN:
            self._given.clear()
        self._given[key] = now, found
        return found

    async def _is_good(self, token: TokenProto) -> bool:
        assert self.holder_of is not None
        try:
            await self.holder_of(token)
        except RemoteFault:
            return False
        return True


@dataclass(frozen=True, slots=True)
class _Caller:
    """Calls ClientProtocol for one request, by the handlers of RPC and for one user."""

    served: WebHdfsRoutes
    actor: callers.Actor
    host: str
    proof: Method

    async def __call__(self, name: str, **fields: object) -> answers.Answer:
        return await self.send(name, table.request_of(name)(**fields))

    async def send(self, name: str, request: Message) -> answers.Answer:
        return await self.served.protocol.methods[name].handle(self._call(name), request)

    def scene(self) -> Scene:
        return self.served.scene(self._call("getFileInfo"))

    def _call(self, name: str) -> Call:
        who = (self.actor.user, self.actor.real or None, self.host)
        return Call(CLIENT_PROTOCOL, name, b"", -2, -1, *who, proof=self.proof)


async def _stream(request: web.Request, asked: Asked, call: _Caller) -> web.StreamResponse:
    """Answer with a whole directory, page after page; one that fails later cuts the answer off."""
    found = answers.page(await _page(call, asked, b""), asked)
    answer = web.StreamResponse(headers={**callers.HEADERS, "Content-Type": callers.JSON})
    answer.force_close()
    await answer.prepare(request)
    await answer.write(b'{"FileStatuses":{"FileStatus":[\n')
    while True:
        lines = [json.dumps(answers.status(one)) for one in found.partialListing]
        more = found.remainingEntries and lines
        await answer.write((",\n".join(lines) + (",\n" if more else "\n]}}\n")).encode())
        if not more:
            return answer
        try:
            last = found.partialListing[-1].path
            found = answers.page(await _page(call, asked, last), asked)
        except (FsError, RemoteFault) as error:
            log.info(
                "webhdfs.listing_cut_off", peer=request.remote, path=asked.path, why=str(error)
            )
            if request.transport is not None:
                request.transport.abort()
            return answer


async def _page(call: _Caller, asked: Asked, after: bytes) -> answers.Answer:
    return await call("getListing", src=asked.path, startAfter=after, needLocation=False)
