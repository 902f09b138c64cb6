"""A call to a served method, as the RPC server makes it."""

import asyncio

from google.protobuf.message import Message

from ha.rpc.protocol import Call, Method


async def carried_out(method: Method, call: Call, request: Message) -> Message:
    """Begin it in this turn of the loop where that can be, else run its handler."""
    done: asyncio.Future[Message | Exception] = asyncio.get_running_loop().create_future()

    def ended(outcome: Message | Exception) -> None:
        if not done.done():  # its caller may be gone
            done.set_result(outcome)

    if method.begin is None or not method.begin(call, request, ended):
        return await method.handle(call, request)
    outcome = await done
    if isinstance(outcome, Exception):
        raise outcome
    return outcome
