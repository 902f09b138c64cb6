"""In whose name a request of WebHDFS is, and how it is answered; with aiohttp."""

import json
import re
from collections.abc import Mapping
from typing import Final

from aiohttp import web

from ha.daemon.http import foreign_pages
from ha.daemon.http.routes import caller_of
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import ACCESS_CONTROL
from ha.security.access_control import AccessControl
from ha.security.caller import Caller
from ha.security.decision import Denied
from ha.security.rights import CLIENT_PROTOCOL
from hadoop.webhdfs import params, refusals

STATIC_USER: Final = "dr.who"
"""hadoop.http.staticuser.user: a caller without a name."""
HEADERS: Final = {
    "Cache-Control": "no-cache",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
}
JSON: Final = "application/json"
BYTES: Final = "application/octet-stream"


def target_of(request: web.Request, names: frozenset[str]) -> tuple[str, params.Query]:
    """Return the path and the parameters of a request to a daemon that has these names.

    Raises:
        RemoteFault: if it cannot be read, or is one of another site's page.
    """
    foreign = foreign_pages.refusal(request.method, request.headers, names)
    if foreign is not None:
        raise RemoteFault(ACCESS_CONTROL, foreign)
    raw, _, query_text = request.raw_path.partition("?")
    query = params.query_of(query_text)
    if not raw.startswith(params.PREFIX):  # with a host in it, or spelled in percent signs
        raise refusals.illegal(f"The address must begin with {params.PREFIX}/")
    return params.path_of(raw.removeprefix(params.PREFIX)), query


async def user_of(
    request: web.Request, query: params.Query, access: AccessControl | None, user_pattern: str
) -> tuple[str, Caller | None]:
    """Return the user that a request is for, and the caller; refuse as RPC would at its start.

    Raises:
        RemoteFault: if the caller may not act under that name.
    """
    if params.value_of("doas", query) is not None:
        raise RemoteFault(
            refusals.AUTHORIZATION, "no user may act for another here: leave out doas"
        )
    named = params.value_of("user.name", query)
    if named is not None and not re.fullmatch(user_pattern, named):
        reason = f'Invalid value: "{named}" does not belong to the domain {user_pattern}'
        raise refusals.invalid_value("user.name", reason)
    if access is None:
        return named or STATIC_USER, None
    caller = await access.named(caller_of(access, request))
    wanted = named or caller.name or STATIC_USER
    found = access.claimed(caller, wanted, None, CLIENT_PROTOCOL)
    if isinstance(found, Denied):
        raise RemoteFault(ACCESS_CONTROL, found.reason)
    return found.name, found


def shown(told: Mapping[str, object] | None) -> web.Response:
    """Return the answer with an object, or without a body."""
    if told is None:
        return web.Response(headers={**HEADERS, "Content-Type": BYTES})
    return web.Response(text=json.dumps(told), headers={**HEADERS, "Content-Type": JSON})


def refused(java_class: str, message: str) -> web.Response:
    """Return the answer that is a Java exception."""
    return web.Response(
        status=refusals.status_of(java_class),
        text=refusals.as_json(java_class, message),
        headers={**HEADERS, "Content-Type": JSON},
    )


async def wait(_: web.Request) -> None:
    """Let a client wait that asks whether to send its data: for the open file, or a DataNode."""
