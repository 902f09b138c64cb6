"""Runs the configured fencing methods in order until one succeeds (Hadoop's NodeFencer)."""

import asyncio
import importlib
import os
import sys
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Protocol, assert_never

import structlog

from fencing import model
from fencing.environment import command_environment
from fencing.local_kill import kill_on_this_machine
from fencing.shell import Finished, NotStarted, Overran, run_command
from fencing.ssh_settings import SshSettings
from ha.conf.host_names import fault_of
from ha.record import dataclass

log = structlog.get_logger()


class RunCommand(Protocol):
    """Runs a shell command; see ``fencing.shell.run_command``."""

    def __call__(
        self, command: str, environment: Mapping[str, str], *, deadline_seconds: float
    ) -> Awaitable[Finished | Overran | NotStarted]:
        """See the class."""


class OverSsh(Protocol):
    """Kills over ssh; see ``fencing.ssh.fence_over_ssh``."""

    def __call__(
        self,
        method: model.SshMethod,
        target: model.Target,
        settings: SshSettings,
        *,
        deadline_seconds: float,
    ) -> Awaitable[tuple[model.FencingOutcome, str, str]]:
        """See the class."""


async def fence(
    methods: Sequence[model.MethodSpec],
    target: model.Target,
    *,
    environment: Mapping[str, str],
    method_timeout_seconds: float,
    total_timeout_seconds: float,
    ssh: SshSettings | None = None,
    run: RunCommand = run_command,
    over_ssh: OverSsh | None = None,
) -> model.FencingReport:
    """Run the methods in order until one succeeds, and return the report of all attempts.

    ``environment`` is the configuration of the target (``Configuration.promoted``).  A method gets
    ``method_timeout_seconds``, but no more than is left of the total.  A failed method is in the
    report, and raises nothing.  On cancellation, all started processes are killed.  ``run`` and
    ``over_ssh`` are replaced in simulations.

    See docs/reference/fencing.md#order-of-methods.
    """
    loop = asyncio.get_running_loop()
    started = loop.time()
    deadline = started + total_timeout_seconds
    attempts: list[model.Attempt] = []
    log.info("fencing.started", target=str(target), methods=[str(one) for one in methods])
    for number, method in enumerate(methods, start=1):
        before = loop.time()
        allowed = min(method_timeout_seconds, deadline - before)
        context = _MethodContext(
            environment, ssh or SshSettings(), allowed, run, over_ssh or _over_ssh
        )
        outcome, detail, output = await _run_method(method, target, context)
        attempt = model.Attempt(
            str(method),
            outcome,
            detail,
            loop.time() - before,
            output,
            method.proves_gone,
        )
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
        if outcome is model.FencingOutcome.SUCCEEDED:
            break
    report = model.FencingReport(target, tuple(attempts), loop.time() - started)
    log.info("fencing.finished", target=str(target), fenced=report.fenced, report=str(report))
    return report


def _find_target_fault(target: model.Target) -> str:
    """Return why no method may run with this target; empty if one may.

    The bad schedule: an attacker writes the host ``$(id)`` into an unprotected breadcrumb, and a
    fencing script puts it into a command line.
    """
    for what, name in (
        ("host", target.host),
        ("nameservice", target.nameservice),
        ("NameNode", target.namenode),
    ):
        if fault := fault_of(name):
            return f"the {what} of the target {fault}: {name[:80]!r}; nothing was started"
    return ""


def load_code_of(methods: Iterable[model.MethodSpec]) -> None:
    """Import the code of these methods, so that the first takeover need not wait 0.1 s for it.

    It is not imported in every controller, because sshfence takes 14 MB.
    """
    if any(isinstance(method, model.SshMethod) for method in methods):
        # Keeps paramiko from importing invoke (3 MB), which it needs for ssh_config files only.
        sys.modules.setdefault("invoke", None)  # type: ignore[arg-type] # an import of it fails
        importlib.import_module("fencing.ssh")


@dataclass(frozen=True, slots=True)
class _MethodContext:
    """What a method gets in addition to its target."""

    environment: Mapping[str, str]
    ssh: SshSettings
    allowed_seconds: float
    run: RunCommand
    over_ssh: OverSsh


async def _over_ssh(
    method: model.SshMethod, target: model.Target, settings: SshSettings, *, deadline_seconds: float
) -> tuple[model.FencingOutcome, str, str]:
    from fencing.ssh import fence_over_ssh

    return await fence_over_ssh(method, target, settings, deadline_seconds=deadline_seconds)


async def _run_method(
    method: model.MethodSpec, target: model.Target, context: _MethodContext
) -> tuple[model.FencingOutcome, str, str]:
    if fault := _find_target_fault(target):
        return model.FencingOutcome.NOT_RUN, fault, ""
    if context.allowed_seconds <= 0:
        reason = "the time for all methods together had run out"
        return model.FencingOutcome.NOT_RUN, reason, ""
    try:
        return await _dispatch(method, target, context)
    except Exception as failure:
        # A bug in one method must not keep the next ones from running: there is no active.
        log.exception("fencing.method_crashed", target=str(target), method=str(method))
        return model.FencingOutcome.FAILED, f"unexpected {type(failure).__name__}: {failure}", ""


async def _dispatch(
    method: model.MethodSpec, target: model.Target, context: _MethodContext
) -> tuple[model.FencingOutcome, str, str]:
    limit = context.allowed_seconds
    match method:
        case model.ShellMethod():
            return await _run_shell(method, target, context)
        case model.SshMethod():
            return await context.over_ssh(method, target, context.ssh, deadline_seconds=limit)
        case model.KillMethod():
            outcome, detail = await kill_on_this_machine(target, deadline_seconds=limit)
            return outcome, detail, ""
        case model.JournalEpochMethod():
            detail = (
                "nothing was done to its process: the journal refuses its edits from the next "
                "epoch on, and it may serve reads until its lease ends"
            )
            return model.FencingOutcome.SUCCEEDED, detail, ""
    assert_never(method)


async def _run_shell(
    method: model.ShellMethod, target: model.Target, context: _MethodContext
) -> tuple[model.FencingOutcome, str, str]:
    allowed_seconds = context.allowed_seconds
    variables = command_environment(os.environ, context.environment, target)
    ended = await context.run(method.command, variables, deadline_seconds=allowed_seconds)
    match ended:
        case Finished(status=0):
            return model.FencingOutcome.SUCCEEDED, "exit status 0", ended.output
        case Finished():
            what = "killed by signal" if ended.status < 0 else "exit status"
            return model.FencingOutcome.FAILED, f"{what} {abs(ended.status)}", ended.output
        case Overran():
            detail = (
                f"killed, with all processes that it had started, after {allowed_seconds:.1f} s"
            )
            return model.FencingOutcome.TIMED_OUT, detail, ended.output
        case NotStarted():
            return model.FencingOutcome.NOT_RUN, ended.reason, ""
    assert_never(ended)
