"""In whose name a request of WebHDFS is, and how it is answered; with aiohttp."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from aiohttp import web

from ha.daemon.http import foreign_pages
from ha.daemon.http.routes import caller_of
from ha.record import dataclass, replace
from ha.rpc import java_names
from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import ACCESS_CONTROL
from ha.security.access_control import AccessControl
from ha.security.caller import Caller, Method
from ha.security.decision import Denied
from ha.security.rights import CLIENT_PROTOCOL
from hadoop.proto.hdfs_types_pb2 import TokenProto
from hadoop.webhdfs import params, refusals, token_text

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

HolderOf = Callable[[TokenProto], Awaitable[Caller | str]]
"""Returns the caller that a delegation token proves, or its owner, whom a NameNode is to believe.

Raises RemoteFault if the token is not good.
"""


@dataclass(frozen=True, slots=True)
class Actor:
    """For whom a request is.

    ``real`` acts for ``user``, or is empty.  ``caller`` is None where access is not controlled, and
    where a NameNode is to judge the ``token``.
    """

    user: str
    caller: Caller | None = None
    real: str = ""
    token: TokenProto | None = None


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


async def actor_of(
    request: web.Request,
    query: params.Query,
    access: AccessControl | None,
    user_pattern: str,
    holder_of: HolderOf | None = None,
) -> Actor:
    """Return for whom a request is; refuse as RPC would at its start.

    ``holder_of`` is None where tokens count for nothing, as in Hadoop without Kerberos.

    Raises:
        RemoteFault: if the caller may not act under that name.
    """
    named, for_user = params.value_of("user.name", query), params.value_of("doas", query)
    if named is not None and not re.fullmatch(user_pattern, named):
        reason = f'Invalid value: "{named}" does not belong to the domain {user_pattern}'
        raise refusals.invalid_value("user.name", reason)
    token = None if holder_of is None else params.value_of("delegation", query)
    if holder_of is not None and token is not None:
        holder = await _holder(request, _token_of(token), holder_of, access)
        for other in {named, for_user} - {None, holder.user}:
            raise _not_matched(other, holder.user)
        return holder
    caller = None
    if access is not None:
        caller = await access.named(access.without_kernel(caller_of(access, request)))
    if for_user is not None:
        if access is None or caller is None or caller.method is not Method.KERBEROS:
            raise RemoteFault(
                refusals.AUTHORIZATION, "no user may act for another without a ticket: no doas"
            )
        return await _acting(caller, for_user, named, access)
    if access is None or caller is None:
        return Actor(named or STATIC_USER)
    wanted = named or caller.name or STATIC_USER
    found = access.claimed(caller, wanted, None, CLIENT_PROTOCOL)
    if isinstance(found, Denied):
        raise RemoteFault(ACCESS_CONTROL, found.reason)
    return Actor(found.name, found)


def _token_of(text: str) -> TokenProto:
    try:
        return token_text.decoded(text)
    except ValueError as problem:
        raise refusals.invalid_value("delegation", str(problem)) from problem


def _not_matched(named: str | None, user: str) -> RemoteFault:
    """Return JspHelper.checkUsername's refusal of a name that is not the proven user's."""
    said = f"Usernames not matched: name={named} != expected={user}"
    return RemoteFault(java_names.IO_EXCEPTION, said)


async def _holder(
    request: web.Request, token: TokenProto, holder_of: HolderOf, access: AccessControl | None
) -> Actor:
    """Return the owner of a token as the operator's lists let it go on."""
    found = await holder_of(token)
    if not isinstance(found, Caller):
        return Actor(found, token=token)
    assert access is not None, "only where access is controlled does a token prove anything"
    caller = replace(found, address=caller_of(access, request).address)
    admitted = await access.admitted(caller, "", java_names.CLIENT_PROTOCOL)
    if isinstance(admitted, Denied):
        raise RemoteFault(ACCESS_CONTROL, admitted.reason)
    return Actor(admitted.name, admitted, admitted.real, token)


async def _acting(caller: Caller, for_user: str, named: str | None, access: AccessControl) -> Actor:
    """Return the user that the holder of a ticket acts for, as hadoop.proxyuser.* lets it."""
    if named not in (None, caller.name):
        raise _not_matched(named, caller.name)
    found = await access.admitted(caller, for_user, java_names.CLIENT_PROTOCOL)
    if isinstance(found, Denied):
        raise RemoteFault(refusals.AUTHORIZATION, found.reason)
    return Actor(found.name, found, found.real)


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
