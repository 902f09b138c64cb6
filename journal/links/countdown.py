"""How long something may take, as measured in this process."""

import asyncio
from collections.abc import Callable
from typing import Final

STEPS: Final = 20


class Countdown:
    """A deadline in steps of real time; ``step`` says how many there have been.

    It counts only time in which this process could have noticed an answer: each step costs one
    step however late it comes, so that a process that was stopped for longer than its deadline
    first reads the answers that lie in its sockets
    (docs/reference/quorum-journal.md#pauses-of-the-writer-itself).
    """

    def __init__(self, seconds: float, stepped: Callable[[], bool]) -> None:
        """Prepare it; ``stepped`` is called after each step and returns whether to go on."""
        self.seconds = seconds
        self.step = 0
        self._stepped = stepped
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Go on counting, if it does not."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self.seconds / STEPS, self._tick)

    def stop(self) -> None:
        """Count no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self._timer = None
        self.step += 1
        if self._stepped():
            self.start()
