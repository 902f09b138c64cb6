"""sshfence's rows, and the weaknesses of Hadoop's, against a real sshd on loopback."""

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from fencing.fencer import fence
from fencing.model import FencingOutcome, JournalEpochMethod, SshMethod, Target
from fencing.ssh_settings import SshSettings
from tests import needs
from tests.fencing import sshd as fencing_sshd

#   fuser, nc (None: not installed) there, and whether somebody listens -> is it fenced?
ROWS_OF_CODES = {
    "fuser 0": ("exit 0", "exit 99", False, True),
    "fuser 1, nc 0": ("exit 1", "exit 0", False, False),
    "fuser 1, nc 0, and we see him": ("exit 1", "exit 0", True, False),
    "fuser 1, nc 1": ("exit 1", "exit 1", False, True),
    "fuser 1, nc 1, but we see somebody": ("exit 1", "exit 1", True, False),
    "fuser 1, nc 2, bash sees nobody": ("exit 1", "exit 2", False, True),
    "fuser 1, nc 2, bash sees somebody": ("exit 1", "exit 2", True, False),
    "fuser 1, no nc, bash sees nobody": ("exit 1", None, False, True),
    "fuser 1, no nc, bash sees somebody": ("exit 1", None, True, False),
    "fuser 2": ("exit 2", "exit 1", False, False),
    "no fuser": (None, "exit 1", False, False),
    "fuser 255": ("exit 255", "exit 1", False, False),
}


@pytest.mark.row("W12")
@pytest.mark.row(
    "8.8 fuser0",
    "8.8 fuser1-nc0",
    "8.8 fuser1-nc1",
    "8.8 fuser1-nc127",
    "8.8 fuser2",
    because="each status of fuser and nc is a case of it",
)
@fencing_sshd.needs_sshd
@pytest.mark.parametrize("row", ROWS_OF_CODES)
async def test_row_8_8_return_codes(sshd: fencing_sshd.Sshd, row: str) -> None:
    """Follow the table of docs/reference/fencing.md#sshfence.

    Hadoop takes any nc but 0 for a success.
    """
    fuser, nc, listening, fenced_then = ROWS_OF_CODES[row]
    for name, script in (("fuser", fuser), ("nc", nc)):
        sshd.replace_command(name, script or "exit 127")
    if listening:
        with fencing_sshd.listener() as (process, port):
            report = await fencing_sshd.fenced(sshd, port)
            assert process.poll() is None
    else:
        report = await fencing_sshd.fenced(sshd, fencing_sshd.free_port())
    assert report.fenced is fenced_then, report
    assert report.proven_gone is fenced_then


@pytest.mark.row("W12")
@fencing_sshd.needs_sshd
async def test_w12_neither_nc_nor_anything_else_to_look_with(sshd: fencing_sshd.Sshd) -> None:
    sshd.replace_command("fuser", "exit 1")
    for missing in ("nc", "timeout"):
        sshd.replace_command(missing, "exit 127")
    report = await fencing_sshd.fenced(sshd, fencing_sshd.free_port())
    assert not report.fenced
    assert "nothing confirms it" in str(report)


@pytest.mark.row("8.8 hang")
@fencing_sshd.needs_sshd
@pytest.mark.parametrize("hanging", ["fuser", "nc"])
async def test_row_8_8_hang(sshd: fencing_sshd.Sshd, hanging: str) -> None:
    sshd.replace_command("fuser", "exit 1")
    sshd.replace_command(hanging, "sleep 60")
    how = replace(fencing_sshd.settings(sshd), command_timeout_seconds=0.5)
    report = await fencing_sshd.fenced(sshd, fencing_sshd.free_port(), how)
    assert not report.fenced
    assert "did not end" in str(report) or "no answer in time" in str(report)
    assert report.duration_seconds < 10


@pytest.mark.row("8.8 testFence")
@fencing_sshd.needs_sshd
async def test_row_8_8_fence(sshd: fencing_sshd.Sshd) -> None:
    """Kill only the listener, a process of its own; the port is closed afterwards."""
    with fencing_sshd.listener() as (process, port), fencing_sshd.listener() as (bystander, _):
        assert (await fencing_sshd.fenced(sshd, port)).proven_gone
        assert process.wait(5) == -9
        assert bystander.poll() is None
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 1)


@pytest.mark.row("8.8 testConnectTimeout")
async def test_row_8_8_connect_timeout() -> None:
    """Try a host that does not answer at all, whatever this machine's network makes of it."""
    report = await fence(
        [SshMethod(fencing_sshd.USER, 22)],
        Target("ns1", "nn1", "192.0.2.1", 8020),
        environment={},
        method_timeout_seconds=20,
        total_timeout_seconds=20,
        ssh=SshSettings(connect_timeout_seconds=1.0),
    )
    assert report.attempts[0].outcome is FencingOutcome.FAILED
    assert "logging in" in str(report)
    assert report.duration_seconds < 10


@pytest.mark.row("8.8 key-refused")
@fencing_sshd.needs_sshd
async def test_row_8_8_key_refused(sshd: fencing_sshd.Sshd, tmp_path: Path) -> None:
    stranger = fencing_sshd.make_key(tmp_path / "stranger")
    report = await fencing_sshd.fenced(
        sshd, fencing_sshd.free_port(), replace(fencing_sshd.settings(sshd), key_files=(stranger,))
    )
    assert report.attempts[0].outcome is FencingOutcome.FAILED
    assert f"{fencing_sshd.USER}@127.0.0.1 refused us" in str(report)
    # One of several keys is enough.
    both = replace(fencing_sshd.settings(sshd), key_files=(stranger, sshd.key))
    assert (await fencing_sshd.fenced(sshd, fencing_sshd.free_port(), both)).fenced


@pytest.mark.row("W11")
@fencing_sshd.needs_sshd
@needs.SSH_AGENT.mark
async def test_w11_a_key_from_the_agent_only_if_that_is_configured(
    sshd: fencing_sshd.Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fencing_sshd.agent_with(sshd.key, tmp_path / "agent") as address:
        monkeypatch.setenv("SSH_AUTH_SOCK", address)
        without_files = replace(fencing_sshd.settings(sshd), key_files=())
        assert not (await fencing_sshd.fenced(sshd, fencing_sshd.free_port(), without_files)).fenced
        report = await fencing_sshd.fenced(
            sshd, fencing_sshd.free_port(), replace(without_files, use_agent=True)
        )
        assert report.fenced, report


@pytest.mark.row("W10")
@fencing_sshd.needs_sshd
async def test_w10_a_hung_method_leaves_the_rest_of_the_time_to_the_next(
    sshd: fencing_sshd.Sshd,
) -> None:
    sshd.replace_command("fuser", "sleep 60")
    report = await fence(
        [
            SshMethod(fencing_sshd.USER, sshd.port),
            SshMethod(fencing_sshd.USER, sshd.port),
            JournalEpochMethod(),
        ],
        Target("ns1", "nn1", "127.0.0.1", fencing_sshd.free_port()),
        environment={},
        method_timeout_seconds=1.0,
        total_timeout_seconds=30.0,
        ssh=replace(fencing_sshd.settings(sshd), command_timeout_seconds=30.0),
    )
    assert [one.outcome for one in report.attempts] == [
        FencingOutcome.TIMED_OUT, FencingOutcome.TIMED_OUT, FencingOutcome.SUCCEEDED,
    ]  # fmt: skip
    assert report.duration_seconds < 10
    assert not report.proven_gone
