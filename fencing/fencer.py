"""Runs the configured methods in order until one says that the target is fenced."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import assert_never

import structlog

from fencing.environment import command_environment
from fencing.model import Attempt, MethodSpec, Outcome, Report, ShellMethod, SshMethod, Target
from fencing.shell import Finished, NotStarted, Overran, run_command

log = structlog.get_logger()


async def fence(
    methods: Sequence[MethodSpec],
    target: Target,
    *,
    environment: Mapping[str, str],
    method_timeout_seconds: float,
    total_timeout_seconds: float,
) -> Report:
    """Try each method in turn; the first success ends it (hadoop-ha.md 4.2).

    ``environment`` is the configuration as the target sees it (``Configuration.promoted``).  A
    method gets ``method_timeout_seconds``, but never more than is left of the total.  Never
    raises for what a method does: everything is in the report.  When cancelled, it kills what it
    has started.
    """
    loop = asyncio.get_running_loop()
    started = loop.time()
    deadline = started + total_timeout_seconds
    attempts: list[Attempt] = []
    log.info("fencing.started", target=str(target), methods=[str(one) for one in methods])
    for number, method in enumerate(methods, start=1):
        before = loop.time()
        allowed = min(method_timeout_seconds, deadline - before)
        outcome, detail, output = await _try(method, target, environment, allowed)
        attempt = Attempt(str(method), outcome, detail, loop.time() - before, output)
        attempts.append(attempt)
        log.info(
            "fencing.attempt",
            target=str(target),
            method=attempt.method,
            number=f"{number}/{len(methods)}",
            outcome=outcome,
            detail=detail,
            seconds=round(attempt.duration_seconds, 3),
        )
        if outcome is Outcome.SUCCEEDED:
            break
    report = Report(target, tuple(attempts), loop.time() - started)
    log.info("fencing.finished", target=str(target), fenced=report.fenced, report=str(report))
    return report


async def _try(
    method: MethodSpec, target: Target, environment: Mapping[str, str], allowed_seconds: float
) -> tuple[Outcome, str, str]:
    if allowed_seconds <= 0:
        return Outcome.NOT_RUN, "the time for all methods together had run out", ""
    match method:
        case ShellMethod():
            return await _try_shell(method, target, environment, allowed_seconds)
        case SshMethod():
            return Outcome.NOT_RUN, "sshfence is not built yet; use shell(...)", ""
    assert_never(method)


async def _try_shell(
    method: ShellMethod, target: Target, environment: Mapping[str, str], allowed_seconds: float
) -> tuple[Outcome, str, str]:
    variables = command_environment(os.environ, environment, target)
    ended = await run_command(method.command, variables, deadline_seconds=allowed_seconds)
    match ended:
        case Finished(status=0):
            return Outcome.SUCCEEDED, "exit status 0", ended.output
        case Finished():
            what = "killed by signal" if ended.status < 0 else "exit status"
            return Outcome.FAILED, f"{what} {abs(ended.status)}", ended.output
        case Overran():
            detail = f"killed with all it had started after {allowed_seconds:.1f} s"
            return Outcome.TIMED_OUT, detail, ended.output
        case NotStarted():
            return Outcome.NOT_RUN, ended.reason, ""
    assert_never(ended)
