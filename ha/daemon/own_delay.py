"""How late our own event loop is, summed up while something is waited for."""

import asyncio
from types import TracebackType


class OwnDelay:
    """Between ``begin`` and ``end``, or in a ``with``: how much too late the loop woke up, in all.

    A peer that gave no answer in time may have given one, or not have been asked, where we stood
    still ourselves.
    """

    def __init__(self, step_seconds: float) -> None:
        """Wake the loop at each step; a delay shorter than a step is not seen as one."""
        self._step_seconds = step_seconds
        self._late = 0.0
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> "OwnDelay":
        self.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def begin(self) -> None:
        """Measure from now on."""
        self._late = 0.0
        self._wait()

    def end(self) -> None:
        """Stop measuring; ``seconds`` stays as it is."""
        self._late = self.seconds
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def seconds(self) -> float:
        """How late the loop was until now, the step that is overdue included."""
        if self._timer is None:
            return self._late
        return self._late + max(0.0, asyncio.get_running_loop().time() - self._due)

    def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        self._due = loop.time() + self._step_seconds
        self._timer = loop.call_at(self._due, self._woken)

    def _woken(self) -> None:
        self._late = self.seconds
        self._wait()
