"""The methods ``kill`` and ``journal-epoch``: what they do, and what they prove."""

import asyncio
import errno
import gc
import os
import signal
import socket
import threading
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest

from fencing.fencer import fence
from fencing.local_kill import kill_on_this_machine
from fencing.model import FencingOutcome, FencingReport, Target
from fencing.spec import parse_methods
from tests.fencing.sshd import free_port, listener


async def fenced_by(text: str, port: int, host: str = "127.0.0.1") -> FencingReport:
    return await fence(
        parse_methods(text),
        Target("ns1", "nn1", host, port),
        environment={},
        method_timeout_seconds=10,
        total_timeout_seconds=10,
    )


async def test_kill_ends_who_listens_here() -> None:
    with listener() as (process, port):
        report = await fenced_by("kill", port)
        assert report.fenced, report
        assert report.proven_gone
        assert process.wait(5) == -9


async def test_kill_finds_nobody_to_kill() -> None:
    report = await fenced_by("kill", free_port())
    assert report.fenced
    assert "no process listens" in str(report)


async def test_kill_says_nothing_about_another_machine() -> None:
    report = await fenced_by("kill", 8020, "192.0.2.1")
    assert report.attempts[0].outcome is FencingOutcome.NOT_RUN
    assert not report.fenced


@pytest.mark.parametrize(
    ("module", "call", "failure", "fenced"),
    [
        (os, "pidfd_open", errno.ESRCH, True),  # it has ended
        (os, "pidfd_open", errno.EMFILE, False),
        (signal, "pidfd_send_signal", errno.ESRCH, True),
        (signal, "pidfd_send_signal", errno.EPERM, False),
        (signal, "pidfd_send_signal", errno.EIO, False),
        (socket, "getaddrinfo", socket.EAI_NONAME, False),
    ],
)
async def test_only_the_end_of_the_process_counts_where_a_system_call_fails(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, call: str, failure: int, fenced: bool
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise (socket.gaierror if call == "getaddrinfo" else OSError)(failure, call)

    with listener() as (process, port):
        monkeypatch.setattr(module, call, fails)
        report = await fenced_by(
            "kill", port if call != "getaddrinfo" else free_port(), "localhost"
        )
        assert report.fenced is fenced, report
        assert process.poll() is None


@pytest.mark.row("W3")
async def test_journal_epoch_fences_edits_and_proves_nothing_about_reads() -> None:
    with listener() as (process, port):
        report = await fenced_by("journal-epoch", port)
        assert report.fenced
        assert not report.proven_gone
        assert process.poll() is None
        assert "lease" in str(report)


def test_a_script_that_does_nothing_proves_nothing() -> None:
    proven = {str(m): m.proves_gone for m in parse_methods("shell(/bin/true)\nshell(stonith a)")}
    assert proven == {"shell(/bin/true)": False, "shell(stonith a)": True}


async def test_a_resolver_that_hangs_costs_kill_its_own_time_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Let the next method have its turn, and kill no process when the answer comes."""
    with listener() as (process, port):
        answers = _hold_resolver(monkeypatch)
        try:
            report = await fence(
                parse_methods("kill\njournal-epoch"),
                Target("ns1", "nn1", "localhost", port),
                environment={},
                method_timeout_seconds=0.2,
                total_timeout_seconds=20,
            )
        finally:
            answers.release.set()
        assert [one.outcome for one in report.attempts] == [
            FencingOutcome.TIMED_OUT,
            FencingOutcome.SUCCEEDED,
        ]
        await asyncio.get_running_loop().shutdown_default_executor()  # its thread has ended
        assert process.poll() is None


async def test_a_kill_that_was_called_off_kills_nobody_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Spare the listener, which may be rightly active again by then."""
    with listener() as (process, port):
        answers = _hold_resolver(monkeypatch)
        fencing = asyncio.create_task(fenced_by("kill", port, "localhost"))
        await asyncio.to_thread(answers.asked.wait, 30)
        fencing.cancel()
        await asyncio.wait({fencing})
        answers.release.set()
        await asyncio.get_running_loop().shutdown_default_executor()  # its thread has ended
        assert process.poll() is None


async def test_a_search_that_fails_after_its_time_is_no_error_of_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    errors: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    answers = _hold_resolver(monkeypatch)
    answers.fails = True
    try:
        async with asyncio.timeout(30):
            await kill_on_this_machine(
                Target("ns1", "nn1", "localhost", free_port()), deadline_seconds=0.1
            )
    finally:
        answers.release.set()
    await asyncio.get_running_loop().shutdown_default_executor()  # its thread has ended
    gc.collect()
    assert not errors


@dataclass
class _Answers:
    """A resolver that answers when it is let."""

    asked: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)
    fails: bool = False


def _hold_resolver(monkeypatch: pytest.MonkeyPatch) -> _Answers:
    answers, resolve = _Answers(), socket.getaddrinfo

    def slowly(*asked: Any, **named: Any) -> Any:  # noqa: ANN401 - as the resolver's own
        answers.asked.set()
        answers.release.wait(60)
        if answers.fails:
            raise RuntimeError("a fault of the resolver")
        return resolve(*asked, **named)

    monkeypatch.setattr(socket, "getaddrinfo", slowly)
    return answers
