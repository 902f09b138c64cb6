"""Takes the steps of negotiations; those of Kerberos may read files, so two threads take them."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import structlog

from ha.security.sasl.mechanism import Challenge, Proven, SaslFailure
from ha.security.sasl.way import Step

log = structlog.get_logger()

_THREADS: Final = ThreadPoolExecutor(2, "sasl")


async def take(step: Step) -> Challenge | Proven | SaslFailure:
    """Take a step, in a thread if it may take long."""
    if not step.way.in_thread:
        return _taken(step)
    return await asyncio.get_running_loop().run_in_executor(_THREADS, _taken, step)


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
