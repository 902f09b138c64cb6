"""sshfence against a real sshd: what it kills, and every way in which it must not claim success."""

import asyncio
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fencing.fencer import fence
from fencing.model import FencingOutcome, FencingReport, JournalEpochMethod, SshMethod, Target
from fencing.ssh_settings import HostKeys, SshSettings
from fencing.ssh_verdict import Port, judge_killed, judge_port
from tests.fencing import sshd as fencing_sshd
from tests.fencing.sshd import (
    Sshd,
    authorized,
    fenced,
    free_port,
    listener,
    make_key,
    needs_sshd,
    settings,
)

NOBODY_LISTENS = Port.CLOSED


@needs_sshd
async def test_it_kills_the_process_on_the_port(sshd: Sshd) -> None:
    with listener() as (process, port):
        report = await fenced(sshd, port)
        assert report.fenced, report
        assert report.proven_gone
        assert process.wait(5) == -9
        assert f"killed process {process.pid}" in report.attempts[0].detail


@needs_sshd
async def test_nobody_on_the_port_is_a_success_that_two_probes_confirm(sshd: Sshd) -> None:
    report = await fenced(sshd, free_port())
    assert report.fenced, report
    assert "is closed there and is closed from here" in str(report)


@needs_sshd
async def test_a_listener_whom_fuser_cannot_see_is_a_failure(sshd: Sshd) -> None:
    sshd.replace_command("fuser", "exit 1")
    with listener() as (process, port):
        report = await fenced(sshd, port)
        assert not report.fenced
        assert "could not kill" in str(report)
        assert process.poll() is None


@needs_sshd
@pytest.mark.parametrize(
    ("status", "told"), [(127, "not installed"), (2, "status 2"), (137, "status 137")]
)
async def test_other_codes_of_fuser_are_failures(sshd: Sshd, status: int, told: str) -> None:
    sshd.replace_command("fuser", f"exit {status}")
    report = await fenced(sshd, free_port())
    assert not report.fenced
    assert told in str(report)


@needs_sshd
async def test_a_probe_that_cannot_tell_is_not_taken_for_a_closed_port(sshd: Sshd) -> None:
    """Refuse nc's status 127, which Hadoop takes for a closed port."""
    sshd.replace_command("nc", "exit 127")
    sshd.replace_command("timeout", "exit 127")
    report = await fenced(sshd, free_port())
    assert not report.fenced
    assert "nothing confirms it" in str(report)


@needs_sshd
async def test_a_process_that_survives_the_kill_is_a_failure(sshd: Sshd) -> None:
    with listener() as (process, port):
        sshd.replace_command("fuser", f"echo {process.pid}; exit 0")
        report = await fenced(sshd, port)
        assert not report.fenced
        assert f"still there: process {process.pid}" in str(report)


@needs_sshd
async def test_a_key_that_the_host_does_not_know(sshd: Sshd, tmp_path: Path) -> None:
    how = replace(settings(sshd), key_files=(make_key(tmp_path / "stranger"),))
    report = await fenced(sshd, free_port(), how)
    assert not report.fenced
    assert "refused us" in str(report)
    assert "stranger" in str(report)


@pytest.mark.row("W11")
@needs_sshd
@pytest.mark.parametrize("kind", ["rsa", "ecdsa", "ed25519"])
async def test_every_usual_kind_of_key_gets_in(sshd: Sshd, tmp_path: Path, kind: str) -> None:
    key = make_key(tmp_path / kind, kind=kind)
    with authorized(sshd, key):
        assert (await fenced(sshd, free_port(), replace(settings(sshd), key_files=(key,)))).fenced


@pytest.mark.row("W11")
@needs_sshd
async def test_an_encrypted_key_opens_with_its_passphrase_file(sshd: Sshd, tmp_path: Path) -> None:
    key = make_key(tmp_path / "locked", passphrase="open sesame")
    secret = tmp_path / "passphrase"
    secret.write_text("open sesame\n")
    secret.chmod(0o600)
    without = replace(settings(sshd), key_files=(key,))
    with authorized(sshd, key):
        assert "passphrase-file" in str(await fenced(sshd, free_port(), without))
        report = await fenced(sshd, free_port(), replace(without, passphrase_file=secret))
        assert report.fenced, report
        assert "open sesame" not in str(report)
        secret.chmod(0o644)
        readable = await fenced(sshd, free_port(), replace(without, passphrase_file=secret))
        assert "others can read" in str(readable)


@pytest.mark.row("W11")
@needs_sshd
async def test_an_unknown_host_key_is_refused_or_remembered(sshd: Sshd, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    how = replace(settings(sshd), known_hosts=known)
    strict = await fenced(sshd, free_port(), how)
    assert not strict.fenced
    assert "is not in" in str(strict)
    assert (await fenced(sshd, free_port(), replace(how, host_keys=HostKeys.ACCEPT_NEW))).fenced
    assert f"[127.0.0.1]:{sshd.port}" in known.read_text()
    assert (await fenced(sshd, free_port(), how)).fenced


@pytest.mark.row("W11")
@needs_sshd
@pytest.mark.parametrize("policy", [HostKeys.STRICT, HostKeys.ACCEPT_NEW])
async def test_a_changed_host_key_is_refused(sshd: Sshd, tmp_path: Path, policy: HostKeys) -> None:
    make_key(tmp_path / "other")
    kind, public = (tmp_path / "other.pub").read_text().split()[:2]
    known = tmp_path / "known_hosts"
    known.write_text(f"[127.0.0.1]:{sshd.port} {kind} {public}\n")
    how = replace(settings(sshd), known_hosts=known, host_keys=policy)
    report = await fenced(sshd, free_port(), how)
    assert not report.fenced
    assert "has changed" in str(report)
    trusting = replace(how, host_keys=HostKeys.OFF)
    assert (await fenced(sshd, free_port(), trusting)).fenced


@needs_sshd
async def test_a_command_that_hangs_ends_with_its_limit(sshd: Sshd) -> None:
    sshd.replace_command("fuser", "sleep 60")
    how = replace(settings(sshd), command_timeout_seconds=0.5)
    began = time.monotonic()
    report = await fenced(sshd, free_port(), how)
    assert not report.fenced
    assert time.monotonic() - began < 10
    assert "killing the process on port" in str(report)


@pytest.mark.row("W10")
@needs_sshd
async def test_the_method_as_a_whole_has_a_limit(sshd: Sshd) -> None:
    sshd.replace_command("fuser", "sleep 60")
    report = await fenced(sshd, free_port(), seconds=1.0)
    assert report.attempts[0].outcome is FencingOutcome.TIMED_OUT
    assert report.duration_seconds < 5


async def test_a_host_that_accepts_and_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        how = SshSettings(connect_timeout_seconds=0.5)
        report = await fence(
            [SshMethod(fencing_sshd.USER, mute.getsockname()[1])],
            Target("ns1", "nn1", "127.0.0.1", 8020),
            environment={},
            method_timeout_seconds=20,
            total_timeout_seconds=20,
            ssh=how,
        )
    assert not report.fenced
    assert "logging in" in str(report)
    assert report.duration_seconds < 10


async def test_a_closed_port_of_ssh() -> None:
    report = await fence(
        [SshMethod(fencing_sshd.USER, free_port())],
        Target("ns1", "nn1", "127.0.0.1", 8020),
        environment={},
        method_timeout_seconds=20,
        total_timeout_seconds=20,
    )
    assert report.attempts[0].outcome is FencingOutcome.FAILED
    assert not report.proven_gone


@needs_sshd
async def test_cancelling_closes_the_connection(sshd: Sshd) -> None:
    sshd.replace_command("fuser", f"echo $$ > {sshd.folder}/started; exec sleep 60")
    task = asyncio.create_task(fenced(sshd, free_port()))
    async with asyncio.timeout(30):
        while not (sshd.folder / "started").exists():
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


#   fuser's status, the port there, the port from here -> is it fenced?
TABLE = {
    (0, NOBODY_LISTENS, NOBODY_LISTENS): True,
    (1, Port.CLOSED, Port.CLOSED): True,
    (1, Port.CLOSED, Port.UNKNOWN): False,
    (0, Port.UNKNOWN, Port.CLOSED): False,
    (0, Port.CLOSED, Port.UNKNOWN): False,
    (0, Port.LISTENS, Port.CLOSED): False,
    (1, Port.CLOSED, Port.LISTENS): False,
    (1, Port.LISTENS, Port.CLOSED): False,
    (1, Port.UNKNOWN, Port.CLOSED): False,
    (1, Port.UNKNOWN, Port.UNKNOWN): False,
    (2, Port.CLOSED, Port.CLOSED): False,
    (126, Port.CLOSED, Port.CLOSED): False,
    (127, Port.CLOSED, Port.CLOSED): False,
    (255, Port.CLOSED, Port.CLOSED): False,
}


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_the_table_of_return_codes(row: tuple[int, Port, Port]) -> None:
    status, there, here = row
    verdict = judge_killed(status, frozenset(), frozenset()) or judge_port(there, here)
    assert (verdict.outcome is FencingOutcome.SUCCEEDED) is TABLE[row], verdict


def test_a_restarted_namenode_is_not_the_one_that_was_killed() -> None:
    again = judge_killed(0, frozenset({7}), frozenset({8}))
    assert again is not None
    assert again.outcome is FencingOutcome.SUCCEEDED


async def test_a_passphrase_that_cannot_be_read_is_not_told(tmp_path: Path) -> None:
    secret = tmp_path / "passphrase"
    secret.write_bytes(b"hunter2\xff")
    secret.chmod(0o600)
    report = await _then_journal_epoch(SshSettings(passphrase_file=secret))
    assert "is no UTF-8" in report.attempts[0].detail
    assert "hunter2" not in str(report)
    assert report.fenced


async def test_a_bug_in_a_method_does_not_cost_the_next_one_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object, **__: object) -> None:
        raise RuntimeError("a bug of the library's")

    monkeypatch.setattr("paramiko.SSHClient.connect", crash)
    report = await _then_journal_epoch(SshSettings(known_hosts=tmp_path / "none"))
    assert [one.outcome for one in report.attempts] == [
        FencingOutcome.FAILED,
        FencingOutcome.SUCCEEDED,
    ]
    assert "a bug of the library's" in report.attempts[0].detail


async def _then_journal_epoch(ssh: SshSettings) -> FencingReport:
    return await fence(
        (SshMethod("nobody", free_port()), JournalEpochMethod()),
        Target("ns1", "nn1", "127.0.0.1", free_port()),
        environment={},
        method_timeout_seconds=10.0,
        total_timeout_seconds=20.0,
        ssh=ssh,
    )
