"""Ends a listening server so that each connection that it has accepted belongs to its protocol."""

import asyncio


async def stop_listening(server: asyncio.Server) -> None:
    """Accept no more; afterwards every protocol knows its connection, and can drop it.

    asyncio makes the transport of an accepted connection one turn of the loop later.  If the
    server is closed in between, that fails in silence, and the socket stays open until the
    garbage collector comes: the peer waits for an answer that nobody will give (python/cpython
    issue 109564).  So there must be none in between.
    """
    loop = asyncio.get_running_loop()
    for listener in server.sockets:
        loop.remove_reader(listener.fileno())
    await asyncio.sleep(0)  # the transports are made
    server.close()
    await asyncio.sleep(0)  # and their protocols are told
