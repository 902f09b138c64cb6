"""Shows the steps of a hand-over at a terminal while they happen.

The ZKFC that carries it out answers once, at the end.  Until then its status page, that of the old
active's ZKFC and the NameNodes themselves are polled; whichever of them cannot be asked from here
is left out.  Nothing depends on it: the outcome is determined and reported elsewhere.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import click

from ha.cluster.query import fetch
from ha.conf.topology import NameNodeAddress
from ha.console.output import plain
from ha.console.switchover_hints import Steps, new_lines, steps_of
from ha.notices.codec import entry
from ha.service.client import state_of
from ha.service.errors import ServiceError
from ha.service.model import ServiceState

POLL_SECONDS: Final = 0.1
ANSWER_SECONDS: Final = 1.0
EDGE_SECONDS: Final = 0.5
"""For the first look, which the hand-over waits for, and the last one, which its end waits for."""

TellLine = Callable[[str], None]
Look = Callable[[], Awaitable[None]]


@asynccontextmanager
async def progress(
    nodes: Sequence[NameNodeAddress], target: str, tell: TellLine | None
) -> AsyncIterator[None]:
    """Report the steps of the hand-over to ``target`` until the block ends; None: do nothing."""
    if tell is None:
        yield
        return
    began = asyncio.get_running_loop().time()

    def timed(line: str) -> None:
        tell(f"{asyncio.get_running_loop().time() - began:7.2f} s  {plain(line)}")

    looks: list[Look] = [_NameNode(one, timed).look for one in nodes]
    looks += [_Zkfc(one, target, timed).look for one in nodes if one.zkfc_http.port]
    # Before it begins: what an earlier hand-over has left on the pages is no news.
    await _all_once(looks)
    polling = [asyncio.create_task(_poll(look)) for look in looks]
    try:
        yield
    finally:
        for task in polling:
            task.cancel()
        await asyncio.gather(*polling, return_exceptions=True)
        await _all_once(looks)


def on_stderr(*, wanted: bool = True) -> TellLine | None:
    """Return a writer of lines to a terminal; None without a terminal, and for JSON and YAML."""
    if not wanted or not sys.stderr.isatty():
        return None
    return lambda line: click.echo(line, err=True)


async def _poll(look: Look) -> None:
    while True:
        await asyncio.sleep(POLL_SECONDS)
        await look()


async def _all_once(looks: Sequence[Look]) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(EDGE_SECONDS):
            await asyncio.gather(*(look() for look in looks))


class _NameNode:
    """Reports each change of a NameNode's role."""

    def __init__(self, node: NameNodeAddress, tell: TellLine) -> None:
        self._node = node
        self._tell = tell
        self._before: ServiceState | None = None

    async def look(self) -> None:
        with suppress(ServiceError):
            state = await state_of(self._node.service, deadline_seconds=ANSWER_SECONDS)
            if self._before and state != self._before:
                self._tell(f"{self._node.namenode} is {state}")
            self._before = state


class _Zkfc:
    """Reports each step of the hand-over that a controller's status page shows."""

    def __init__(self, node: NameNodeAddress, target: str, tell: TellLine) -> None:
        self._node = node
        self._is_target = node.namenode == target
        self._tell = tell
        self._before: Steps | None = None

    async def look(self) -> None:
        name = self._node.namenode
        with suppress(OSError, ValueError):
            async with asyncio.timeout(ANSWER_SECONDS):
                page = await fetch(self._node.zkfc_http)
            if entry(str, page.get("role")) != "zkfc" or entry(str, page.get("namenode")) not in (
                None,
                name,
            ):
                return  # the default address is on every host, and here is another one's
            now = steps_of(page)
            for line in new_lines(name, self._before, now, is_target=self._is_target):
                self._tell(line)
            self._before = now
