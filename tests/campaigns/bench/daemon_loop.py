"""The event loop of the bench: that of our daemons, for every system that is written to."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from typing import Any

from ha.daemon.event_loop import LOOP_VARIABLE, chosen_loop, loop_factory, uvloop_installed


def daemon_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    return loop_factory(chosen_loop(os.environ.get(LOOP_VARIABLE), installed=uvloop_installed()))


def run(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=daemon_loop()) as runner:
        runner.run(main)
