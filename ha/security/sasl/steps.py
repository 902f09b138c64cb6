"""Takes the steps of negotiations; those of Kerberos may read files, so two threads take them."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import structlog

from ha.security.sasl.mechanism import Challenge, Proven, SaslFailure
from ha.security.sasl.way import Step

log = structlog.get_logger()

STEP_SECONDS: Final = 5.0
"""Less than a caller has for its handshake (RpcLimits): it gets an answer before that ends."""
MOST_WAITING: Final = 1024

_THREADS: Final = ThreadPoolExecutor(2, "sasl")
_waiting: set["asyncio.Future[Challenge | Proven | SaslFailure]"] = set()
"""Steps that have no outcome yet, those of callers that are gone, too."""


async def take(step: Step) -> Challenge | Proven | SaslFailure:
    """Take a step, in a thread if it may take long; where that takes too long, it has failed."""
    if not step.way.in_thread:
        return _take(step)
    if len(_waiting) < MOST_WAITING:
        work = asyncio.get_running_loop().run_in_executor(_THREADS, _take, step)
        _waiting.add(work)
        work.add_done_callback(_waiting.discard)
        if (await asyncio.wait([work], timeout=STEP_SECONDS))[0]:
            return work.result()
    log.error("sasl.step_hangs", method=step.way.method.value, seconds=STEP_SECONDS,
              waiting=len(_waiting), do="look whether the keytab can be read: cat it")  # fmt: skip
    return SaslFailure("no outcome in time: is the keytab readable?", public="try again later")


def _take(step: Step) -> Challenge | Proven | SaslFailure:
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
