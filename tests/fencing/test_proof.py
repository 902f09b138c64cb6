"""What proves a fence over ssh: nothing but an answer of the remote shell in this very session."""

import shutil
import subprocess
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencing.remote_shell import Answer, Nonce, new_nonce
from fencing.ssh_verdict import Port, port_at, port_seen
from tests.fencing.sshd import (
    Sshd,
    authorized,
    fenced,
    free_port,
    listener,
    needs_sshd,
    settings,
)
from tests.needs import COMMANDS, SEARCHED

NONCE = Nonce("5eed", 20, 22)
ANSWER = b"5eed-42 0 7 8 5eed-end"

REFUSALS = {
    "nologin": "/usr/sbin/nologin",
    "it ends with 1": "exit 1",
    "it ends with 0": "exit 0",
    "it ends with 0 and names a process": "echo 1; exit 0",
    "it prints a status": "echo 0; echo 1; exit 1",
    "it repeats the command": "echo refused: $SSH_ORIGINAL_COMMAND",
    "it repeats the command, worked out once": "eval echo $SSH_ORIGINAL_COMMAND",
    "it ends by a signal": "kill -9 $$",
    "it says much and nothing": "yes 1 | head -c 300000",
}


@needs_sshd
@pytest.mark.parametrize("hangs", [True, False], ids=["hung", "gone"])
@pytest.mark.parametrize("refusal", REFUSALS)
async def test_a_shell_that_refuses_proves_nothing(
    sshd: Sshd, refusal: str, *, hangs: bool
) -> None:
    with (
        authorized(sshd, options=f'command="{REFUSALS[refusal]}"'),
        listener(hangs=True) as (victim, port),
    ):
        report = await fenced(sshd, port if hangs else free_port())
        assert victim.poll() is None
    assert not report.fenced, report
    assert "did not answer 'fuser -k" in str(report)
    assert "no nologin, no ForceCommand" in str(report)


@needs_sshd
@pytest.mark.parametrize(
    "netcat",
    [
        "exit 1",  # OpenBSD's, where nothing answers
        "exit 127",
        # The host's own name leads to another address there, as Debian's 127.0.1.1.
        "echo nc: Connection refused >&2; exit 1",
    ],
)
async def test_a_hung_process_that_fuser_cannot_see_is_no_dead_one(sshd: Sshd, netcat: str) -> None:
    sshd.replace_command("fuser", "exit 1")
    sshd.replace_command("nc", netcat)
    with listener(hangs=True) as (victim, port):
        report = await fenced(sshd, port)
        assert victim.poll() is None
    assert not report.fenced, report
    assert "did not answer from here" in str(report)


BLIND = {
    "a netcat that is silent": "exit 1",
    "a netcat without -z": "echo nc: invalid option -- z >&2; exit 2",
    "busybox's usage": "echo Usage: nc >&2; exit 1",
    "a netcat that times out": "echo nc: connect timed out: Operation now in progress >&2; exit 1",
    "one that may not run": "exit 126",
    "one address of the name refuses, one is silent": (
        "echo nc: connect to n port 1 failed: Connection refused >&2;"
        "echo nc: connect to n port 1 timed out >&2; exit 1"
    ),
}


@needs_sshd
@pytest.mark.parametrize("netcat", BLIND)
async def test_a_netcat_that_shows_no_refusal_confirms_nothing(sshd: Sshd, netcat: str) -> None:
    sshd.replace_command("fuser", "exit 1")
    sshd.replace_command("nc", BLIND[netcat])
    sshd.replace_command("bash", "echo bash: /dev/tcp/h/1: No such file or directory >&2; exit 1")
    report = await fenced(sshd, free_port())
    assert not report.fenced, report
    assert "did not answer there and is closed from here" in str(report)


PROVED = {
    # nc there, bash there: nothing listens, and each of them can say so
    "OpenBSD's, with -v": ("echo nc: connect to n port 1 failed: Connection refused; exit 1", True),
    "OpenBSD's, silent": ("exit 1", True),
    "ncat 6.40": ("case $* in *-z*) exit 2;; esac; echo Ncat: Connection refused.; exit 1", False),
    "busybox's": (
        "case $* in *-z*) exit 1;; esac; echo nc: can not connect: Connection refused; exit 1",
        False,
    ),
    "none": ("exit 127", True),
}


@needs_sshd
@pytest.mark.parametrize("there", PROVED)
async def test_a_host_without_the_process_is_fenced_by_whatever_netcat_it_has(
    sshd: Sshd, there: str
) -> None:
    netcat, bash = PROVED[there]
    sshd.replace_command("nc", netcat)
    if not bash:
        sshd.replace_command("bash", "exit 127")
    report = await fenced(sshd, free_port())
    assert report.proven_gone, report
    assert "is closed there and is closed from here" in str(report)


NETCATS = ("nc.openbsd", "nc.traditional", "ncat", "busybox nc")


@needs_sshd
@pytest.mark.parametrize("netcat", NETCATS)
async def test_each_netcat_of_this_machine_shows_what_the_port_is(sshd: Sshd, netcat: str) -> None:
    program = shutil.which(netcat.split()[0], path=SEARCHED)
    if program is None:
        COMMANDS[netcat.split()[0]].skip()
    sshd.replace_command("fuser", "exit 1")
    sshd.replace_command("bash", "exit 127")
    sshd.replace_command("nc", " ".join(["exec", program, *netcat.split()[1:], '"$@"']))
    assert (await fenced(sshd, free_port())).proven_gone
    for hangs in (False, True):
        with listener(hangs=hangs) as (victim, port):
            assert not (await fenced(sshd, port)).fenced
            assert victim.poll() is None


NOISE = {
    "a number before": "echo 'Welcome! 42 updates'; eval \\\"$SSH_ORIGINAL_COMMAND\\\"",
    "the number of its own": 'echo $PPID; eval \\"$SSH_ORIGINAL_COMMAND\\"',
    "no end of line": 'printf 42; eval \\"$SSH_ORIGINAL_COMMAND\\"; printf 43',
    "numbers behind": 'eval \\"$SSH_ORIGINAL_COMMAND\\"; echo 44; exit 3',
    "errors": 'echo 45 >&2; eval \\"$SSH_ORIGINAL_COMMAND\\"; echo 46 >&2',
    "very much": 'yes 47 | head -c 300000; eval \\"$SSH_ORIGINAL_COMMAND\\"',
    "one that never closes its output": 'sleep 20 & eval \\"$SSH_ORIGINAL_COMMAND\\"',
}


@needs_sshd
@pytest.mark.parametrize("noise", NOISE)
async def test_what_start_files_print_is_no_process(sshd: Sshd, noise: str) -> None:
    with (
        authorized(sshd, options=f'command="{NOISE[noise]}"'),
        listener() as (victim, port),
    ):
        report = await fenced(sshd, port)
        assert report.proven_gone, report
        assert victim.wait(5) == -9
    assert report.attempts[0].detail == f"killed process {victim.pid}"


@needs_sshd
async def test_a_second_fuser_that_cannot_run_proves_no_end(sshd: Sshd) -> None:
    with listener() as (victim, port):
        script = f"case $* in *-k*) echo {victim.pid};; *) exit 127;; esac"
        sshd.replace_command("fuser", script)
        report = await fenced(sshd, port)
        assert victim.poll() is None
    assert not report.fenced, report
    assert "whether they ended is not known" in str(report)


@needs_sshd
async def test_a_kill_without_a_name_is_proved_by_the_port(sshd: Sshd) -> None:
    """Take busybox's fuser, which names none of those that it kills."""
    sshd.replace_command("fuser", "exit 0")
    with listener(hangs=True) as (victim, port):
        assert not (await fenced(sshd, port)).fenced
        assert victim.poll() is None


@needs_sshd
async def test_the_connection_lost_within_a_command_proves_nothing(sshd: Sshd) -> None:
    up = 'p=$PPID; until grep -q ^sshd /proc/$p/comm; do p=$(cut -d" " -f4 /proc/$p/stat); done'
    sshd.replace_command("fuser", f"{up}; kill -9 $p")
    how = replace(settings(sshd), command_timeout_seconds=5.0)
    report = await fenced(sshd, free_port(), how)
    assert not report.fenced, report


def test_no_two_sessions_have_the_same_marker() -> None:
    made = {new_nonce() for _ in range(20)}
    assert len({one.word for one in made}) == 20
    assert len({one.first for one in made}) > 10


@given(st.binary(), st.binary())
def test_noise_around_an_answer_changes_nothing(before: bytes, behind: bytes) -> None:
    answer = NONCE.answer_in(before + ANSWER + behind)
    assert answer is not None
    assert answer == Answer(0, "7 8") or b"5eed" in before


@given(st.binary())
def test_without_the_marker_there_is_no_answer(noise: bytes) -> None:
    for said in (noise, noise + NONCE.script("fuser -n tcp 1").encode() + noise):
        assert NONCE.answer_in(said) is None
    assert NONCE.answer_in(noise + ANSWER[:-1]) is None, "half an answer is none"
    assert NONCE.answer_in(noise + b"5eed-42 1 7 0dd-end") is None


SHELLS = ("sh", "dash", "bash", "zsh", "tcsh", "fish", "busybox sh")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_login_shell_can_start_the_script(shell: str) -> None:
    need = COMMANDS[shell.split()[0]]
    if not need.here:
        need.skip()
    for command, expected in {
        "echo 7; echo 8 >&2; exit 3": Answer(3, "7"),
        "echo *; echo a  b": Answer(0, "* a b"),
        "no-such-command 2>/dev/null": Answer(127, ""),
    }.items():
        done = subprocess.run(
            [*shell.split(), "-c", NONCE.script(command)], capture_output=True, check=False
        )
        assert NONCE.answer_in(done.stdout) == expected, (shell, done)


SEEN = {
    "nc: connect to h (127.0.0.1) port 1 (tcp) failed: Connection refused": (1, Port.CLOSED),
    "localhost [127.0.0.1] 28122 (?) : Connection refused": (1, Port.CLOSED),
    "Ncat: Connection refused.": (1, Port.CLOSED),
    "bash: connect: Connection refused bash: /dev/tcp/h/1: Connection refused": (1, Port.CLOSED),
    "nc: can't connect to remote host (127.0.0.1): Connection refused": (1, Port.CLOSED),
    "nc: connect to timeout port 1 (tcp) failed: Connection refused": (1, Port.CLOSED),
    "Connection to h 1 port [tcp/*] succeeded!": (0, Port.LISTENS),
    "": (1, Port.UNKNOWN),
    "nc: timed out": (1, Port.UNKNOWN),
    "Ncat: TIMEOUT.": (1, Port.UNKNOWN),
    "bash: /dev/tcp/h/1: No such file or directory": (1, Port.UNKNOWN),
    "a: Connection refused b: Network is unreachable": (1, Port.UNKNOWN),
    "nc: getaddrinfo for host h port 1: Name or service not known": (1, Port.UNKNOWN),
}


@pytest.mark.parametrize("said", SEEN)
def test_only_a_refusal_in_words_shows_a_closed_port(said: str) -> None:
    status, expected = SEEN[said]
    assert port_seen(status, said, "timeout") is expected


@pytest.mark.parametrize(
    ("seen", "together"),
    [
        ([], Port.UNKNOWN),
        ([Port.CLOSED], Port.CLOSED),
        ([Port.CLOSED, Port.UNKNOWN], Port.UNKNOWN),
        ([Port.UNKNOWN, Port.CLOSED, Port.LISTENS], Port.LISTENS),
    ],
)
def test_one_silent_address_of_a_name_is_a_doubt(seen: list[Port], together: Port) -> None:
    assert port_at(seen) is together
