"""The methods ``kill`` and ``journal-epoch``: what they do, and what they prove."""

from fencing.fencer import fence
from fencing.model import Outcome, Report, Target, proves_gone
from fencing.spec import parse_methods
from tests.fencing.sshd import free_port, victim


async def fenced_by(text: str, port: int, host: str = "127.0.0.1") -> Report:
    return await fence(
        parse_methods(text),
        Target("ns1", "nn1", host, port),
        environment={},
        method_timeout_seconds=10,
        total_timeout_seconds=10,
    )


async def test_kill_ends_who_listens_here() -> None:
    with victim() as (process, port):
        report = await fenced_by("kill", port)
        assert report.fenced, report
        assert report.proven_gone
        assert process.wait(5) == -9


async def test_kill_finds_nobody_to_kill() -> None:
    report = await fenced_by("kill", free_port())
    assert report.fenced
    assert "nobody listens" in str(report)


async def test_kill_says_nothing_about_another_machine() -> None:
    report = await fenced_by("kill", 8020, "192.0.2.1")
    assert report.attempts[0].outcome is Outcome.NOT_RUN
    assert not report.fenced


async def test_journal_epoch_fences_edits_and_proves_nothing_about_reads() -> None:
    with victim() as (process, port):
        report = await fenced_by("journal-epoch", port)
        assert report.fenced
        assert not report.proven_gone
        assert process.poll() is None
        assert "lease" in str(report)


def test_a_script_that_does_nothing_proves_nothing() -> None:
    proven = {str(m): proves_gone(m) for m in parse_methods("shell(/bin/true)\nshell(stonith a)")}
    assert proven == {"shell(/bin/true)": False, "shell(stonith a)": True}
