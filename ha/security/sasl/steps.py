"""Takes the steps of negotiations.

A step of Kerberos may read files and takes CPU outside of the interpreter: two threads take them,
and where too many wait, the next caller is sent away.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import structlog

from ha.security.sasl.mechanism import Challenge, Proven, SaslFailure
from ha.security.sasl.way import Step

log = structlog.get_logger()

THREADS: Final = 2
MOST_WAITING: Final = 64


class Steps:
    """Takes steps in threads of their own, which begin with the first."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "sasl")
        self._waiting = 0

    async def take(self, step: Step) -> Challenge | Proven | SaslFailure:
        """Take a step, in a thread if it may take long."""
        if not step.way.in_thread:
            return _taken(step)
        if self._waiting >= MOST_WAITING:
            return SaslFailure(f"{self._waiting} handshakes wait", public="too many handshakes")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, _taken, step)
        finally:
            self._waiting -= 1


def _taken(step: Step) -> Challenge | Proven | SaslFailure:
    try:
        outcome = step.acceptor.step(step.token)
        if isinstance(outcome, Proven):
            step.way.user_of(outcome.name)
    except SaslFailure as failure:
        return failure
    except Exception:  # a stranger's bytes must not end more than their connection
        log.exception("sasl.step_crashed", method=step.way.method.value)
        return SaslFailure("the mechanism crashed; the log has it")
    return outcome


STEPS: Final = Steps()
