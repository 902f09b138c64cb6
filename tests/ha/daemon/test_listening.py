"""A connection that comes while its server stops is dropped, not forgotten."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from ha.daemon.http.endpoint import Endpoint
from ha.rpc.server import RpcServer
from tests.stand_in import HOST, TURNS_OF_AN_ACCEPT, hung_up_on_at_the_stop, say_nothing, stand_in

Begun = tuple[int, Callable[[], Awaitable[None]]]


async def _endpoint() -> Begun:
    endpoint = Endpoint(status=dict, healthy=lambda: None)
    return await endpoint.start(HOST, 0), endpoint.stop


async def _rpc_server() -> Begun:
    server = RpcServer([])
    return await server.start(HOST, 0), server.stop


async def _stand_in() -> Begun:
    stack = AsyncExitStack()
    return await stack.enter_async_context(stand_in(say_nothing)), stack.aclose


@pytest.mark.parametrize("turns", range(TURNS_OF_AN_ACCEPT))
@pytest.mark.parametrize("begin", [_endpoint, _rpc_server, _stand_in])
async def test_a_newcomer_is_hung_up_on(begin: Callable[[], Awaitable[Begun]], turns: int) -> None:
    port, stop = await begin()
    await hung_up_on_at_the_stop(port, stop, turns)
