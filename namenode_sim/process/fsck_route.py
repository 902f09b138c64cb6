"""GET /fsck: what Hadoop's DFSck and ``nnha fsck`` ask; loaded with aiohttp.

See docs/reference/datanodes.md#fsck.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Final

from aiohttp import web

from ha.daemon.http.routes import caller_of
from ha.record import dataclass, field
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import ACCESS_CONTROL, CLIENT_PROTOCOL, FILE_NOT_FOUND
from ha.rpc.protocol import Call
from ha.security.access_control import AccessControl
from ha.security.decision import Denied
from ha.security.rights import HTTP
from namenode_sim.client_protocol.fsck.report import Report, block_text, find_block, missing_text
from namenode_sim.client_protocol.words.errors import FsError, io_error
from namenode_sim.datanode_protocol.slices import SLICE_SECONDS
from namenode_sim.datanodes.redundancy import Redundancy
from namenode_sim.process.client_service import ClientService
from namenode_sim.process.listeners import FSCK

MOST_AT_ONCE: Final = 4
MOST_BLOCKS: Final = 1000
STATIC_USER: Final = "dr.who"
"""hadoop.http.staticuser.user: a caller without a name."""
_STATUS: Final = {FILE_NOT_FOUND: 404, ACCESS_CONTROL: 403}
_REPAIRS: Final = (
    "-move and -delete are refused, and nothing was changed: copy what can be read of the files "
    "that fsck names (hdfs dfs -get), and delete them (hdfs dfs -rm)"
)


@dataclass(slots=True)
class FsckRoute:
    """Answers ``MOST_AT_ONCE`` checks at a time, each of them in slices."""

    service: ClientService
    redundancy: Redundancy
    access: AccessControl | None
    _running: int = field(default=0, init=False)

    def route(self) -> web.RouteDef:
        return web.get(FSCK, self._get)

    async def _get(self, request: web.Request) -> web.StreamResponse:
        if self._running >= MOST_AT_ONCE:
            raise web.HTTPServiceUnavailable(text=f"{MOST_AT_ONCE} checks run already: try again")
        self._running += 1
        try:
            user = await self._user(request)
            if request.query.get("form") == "json":
                return await self._json(user, request)
            answer = web.StreamResponse(headers={"Content-Type": "text/plain; charset=utf-8"})
            await answer.prepare(request)
            async for text in self._text(user, request):
                await answer.write(text.encode())  # waits for a slow reader
            return answer
        finally:
            self._running -= 1

    async def _user(self, request: web.Request) -> str:
        """Return the caller's name; raise HTTPForbidden where the mode does not believe it."""
        named = request.query.get("user.name") or request.query.get("ugi") or ""
        if self.access is None:
            return named or STATIC_USER
        caller = await self.access.named(caller_of(self.access, request))
        found = self.access.claimed(caller, named or caller.name or STATIC_USER, None, HTTP)
        if isinstance(found, Denied):
            raise web.HTTPForbidden(text=found.reason)
        return found.name

    async def _begin(self, user: str, request: web.Request) -> Report:
        service, query = self.service, request.query
        call = Call(CLIENT_PROTOCOL, "fsck", b"", -2, -1, user, None, request.remote or "")
        await service.groups.learn(user)
        await service.gate.admit("fsck", writes=False)
        if {"move", "delete"} & set(query):
            raise io_error(_REPAIRS)
        path, flags = query.get("path", "/"), frozenset(query)
        return Report(service.scene(call), self.redundancy, path, flags)

    async def _text(self, user: str, request: web.Request) -> AsyncIterator[str]:
        query, began, last = request.query, time.monotonic(), ""
        path, words = query.get("path", "/"), query.get("blockId")
        subject = f"for path {path} " if words is None else ""
        yield f"FSCK started by {user} (auth:SIMPLE) from /{request.remote} {subject}at {_date()}\n"
        try:
            report = await self._begin(user, request)
            if words is not None:
                pieces = [block_text(report, word) for word in words.split()[:MOST_BLOCKS] or [""]]
            elif "listcorruptfileblocks" in query:
                pieces = [missing_text(report.scene, path, query.get("startblockafter", ""))]
            else:
                pieces = []
                async for text in self._in_slices(report.steps()):
                    yield text
            # A NameNode that was stopped for a while must not say what was true before.
            await self.service.log.confirmed(self.service.namespace.last_applied)
            last = "" if pieces else report.verdict()
            yield "".join(pieces)
        except (FsError, RemoteFault) as error:
            last = f"{error.message}\n\n\nFsck on path '{path}' FAILED"
            if error.java_class == FILE_NOT_FOUND:
                last = f"\n\nPath '{path}' does not exist"
        if last:
            millis = round((time.monotonic() - began) * 1000)
            yield f"FSCK ended at {_date()} in {millis} milliseconds\n{last}"

    async def _in_slices(self, steps: Iterator[str]) -> AsyncIterator[str]:
        """Yield text in pieces, so that others get the loop; raise FsError after a failover."""
        clock, term = asyncio.get_running_loop().time, self.service.cluster.term
        began, said = clock(), list[str]()
        for text in steps:
            said.append(text)
            if clock() >= began + SLICE_SECONDS:
                yield "".join(said)
                await asyncio.sleep(0)
                if self.service.cluster.term != term:
                    raise io_error("this NameNode is the active no longer: ask the new one")
                began, said = clock(), []
        yield "".join(said)

    async def _json(self, user: str, request: web.Request) -> web.Response:
        """Answer as programs read it; a path or block that cannot be had with a status of 4xx."""
        block = request.query.get("blockId")
        try:
            report = await self._begin(user, request)
            if block is not None:
                path, found = find_block(report.scene, self.redundancy, block)
                report.list_blocks(path, found)
            elif "needed" in request.query:
                report.list_needed()
            else:
                async for _ in self._in_slices(report.steps()):
                    pass
            await self.service.log.confirmed(self.service.namespace.last_applied)
        except (FsError, RemoteFault) as error:
            status = _STATUS.get(error.java_class, 503)
            return web.json_response({"error": error.message}, status=status)
        return web.json_response(report.as_json())


def _date() -> str:
    """Return the time as Java's Date prints it."""
    return time.strftime("%a %b %d %H:%M:%S %Z %Y")
