"""The page with all stacks is there for every daemon, whatever its tasks are made of."""

import asyncio

import grpc.aio

from ha.daemon.http.stacks import stacks


async def test_a_task_of_a_library_without_source_does_not_cost_the_page() -> None:
    """Show gRPC's tasks, which are compiled: linecache finds no line of them."""
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary("/nobody/Answers")(b"")
        waiting = asyncio.create_task(asyncio.Event().wait(), name="ours")
        await asyncio.wait({asyncio.ensure_future(call.code())}, timeout=5)
        text = stacks()
        assert "name='ours'" in text
        assert "test_a_task_of_a_library_without_source" in text
        waiting.cancel()
    await server.stop(None)
