"""Hadoop's TestNodeFencer and TestShellCommandFencer, row by row."""

from pathlib import Path

import pytest

from fencing.fencer import fence
from fencing.model import BadSpec, FencingOutcome, FencingReport, ShellMethod, SshMethod, Target
from fencing.shell import abbreviate
from fencing.spec import parse_methods
from ha.conf.secrets import redact
from tests.fencing.sshd import free_port
from tests.log_lines import captured

TARGET = Target("ns1", "nn1", "dummyhost", 1234)


async def fenced_by(
    text: str, environment: dict[str, str] | None = None, target: Target = TARGET
) -> FencingReport:
    return await fence(
        parse_methods(text),
        target,
        environment=environment or {},
        method_timeout_seconds=20,
        total_timeout_seconds=40,
    )


# 8.7: Hadoop's test has a class of its own as a method, with an argument; ours is the shell.


@pytest.mark.row("8.7 testSingleFencer")
async def test_row_8_7_single_fencer(tmp_path: Path) -> None:
    called = tmp_path / "called"
    report = await fenced_by(f"shell(echo foo $target_host:$target_port >> {called})")
    assert report.fenced
    assert called.read_text() == "foo dummyhost:1234\n"


@pytest.mark.row("8.7 testMultipleFencers")
async def test_row_8_7_multiple_fencers(tmp_path: Path) -> None:
    called = tmp_path / "called"
    report = await fenced_by(f"shell(echo foo >> {called})\nshell(echo bar >> {called})")
    assert report.fenced
    assert called.read_text() == "foo\n"


@pytest.mark.row("8.7 testWhitespaceAndCommentsInConfig")
async def test_row_8_7_whitespace_and_comments_in_config(tmp_path: Path) -> None:
    called = tmp_path / "called"
    report = await fenced_by(
        f"\n  # the first is commented\n  shell(echo 1 >> {called}; exit 1) # fails\n\n"
        f"   shell(echo 2 >> {called})\nshell(echo 3 >> {called})"
    )
    assert report.fenced
    assert called.read_text() == "1\n2\n"


@pytest.mark.row("8.7 testArglessFencer")
async def test_row_8_7_argless_fencer() -> None:
    (method,) = parse_methods("journal-epoch")
    assert str(method) == "journal-epoch"
    assert (await fenced_by("journal-epoch")).fenced
    with pytest.raises(BadSpec, match="takes none"):
        parse_methods("journal-epoch(x)")


@pytest.mark.row("8.7 testShortNameShell")
async def test_row_8_7_short_name_shell() -> None:
    assert (await fenced_by("shell(true)")).fenced


@pytest.mark.row("8.7 testShortNameSsh")
@pytest.mark.row(
    "8.7 testShortNameSshWithUser",
    "8.7 testShortNameSshWithPort",
    "8.7 testShortNameSshWithUserPort",
    because="with and without user and port are its cases",
)
@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("sshfence", SshMethod(None, 22)),
        ("sshfence(user)", SshMethod("user", 22)),
        ("sshfence(:123)", SshMethod(None, 123)),
        ("sshfence(user:123)", SshMethod("user", 123)),
    ],
)
async def test_row_8_7_short_name_ssh(text: str, method: SshMethod) -> None:
    """Find the fencer; against a host that is not there it fails and raises nothing."""
    assert parse_methods(text) == (method,)
    nowhere = Target("ns1", "nn1", "no-such-host.invalid", free_port())
    report = await fenced_by(text, target=nowhere)
    assert [attempt.outcome for attempt in report.attempts] == [FencingOutcome.FAILED]


@pytest.mark.row("8.9 testBasicSuccessFailure")
async def test_row_8_9_basic_success_failure() -> None:
    assert (await fenced_by("shell(echo)")).fenced
    assert not (await fenced_by("shell(exit 1)")).fenced
    assert not (await fenced_by("shell(xxxxxxxxxxxx)")).fenced


@pytest.mark.row("8.9 testCheckNoArgs")
def test_row_8_9_check_no_args() -> None:
    with pytest.raises(BadSpec, match="No argument passed"):
        parse_methods("shell")


@pytest.mark.row("8.9 testCheckParensNoArgs")
def test_row_8_9_check_parens_no_args() -> None:
    with pytest.raises(BadSpec, match="Unable to parse line"):
        parse_methods("shell()")


@pytest.mark.row("8.9 testStderrLogging")
@pytest.mark.row("8.9 testStdoutLogging", because="one command writes to both")
@pytest.mark.parametrize(
    ("command", "event", "level"),
    [("echo hello", "stdout", "info"), ("echo hello>&2", "stderr", "warning")],
    ids=["stdout", "stderr"],
)
async def test_row_8_9_stdout_and_stderr_logging(command: str, event: str, level: str) -> None:
    with captured("fencing.std") as logs:
        assert (await fenced_by(f"shell({command})")).fenced
    (line,) = logs
    assert (line["event"], line["log_level"]) == (f"fencing.{event}", level)
    assert (line["command"], line["line"]) == (command, "hello")
    assert isinstance(line["pid"], int)


@pytest.mark.row("8.9 testConfAsEnvironment")
async def test_row_8_9_conf_as_environment() -> None:
    with captured("fencing.stdout") as logs:
        report = await fenced_by("shell(echo $in_fencing_tests)", {"in.fencing.tests": "yessir"})
    assert report.attempts[0].output == "yessir"
    (line,) = logs
    assert line["command"] == "echo $in...ing_tests"  # 8 characters, dots, 9 characters


@pytest.mark.row("8.9 testTargetAsEnvironment")
async def test_row_8_9_target_as_environment() -> None:
    report = await fenced_by(
        'shell(echo "$target_host $target_port $target_address '
        '$target_nameserviceid $target_namenodeid")'
    )
    assert report.attempts[0].output == "dummyhost 1234 dummyhost:1234 ns1 nn1"


@pytest.mark.row("8.9 testSubprocessInputIsClosed")
async def test_row_8_9_subprocess_input_is_closed() -> None:
    report = await fenced_by("shell(read)")
    assert not report.fenced
    assert report.duration_seconds < 5


@pytest.mark.row("8.9 testCommandAbbreviation")
def test_row_8_9_command_abbreviation() -> None:
    table = {
        ("abcdef", 5): "a...f",
        ("abcdef", 6): "abcdef",
        ("abcdef", 7): "abcdef",
        ("abcdefg", 5): "a...g",
        ("abcdefgh", 5): "a...h",
        ("abcdefgh", 6): "a...gh",
        ("abcdefgh", 7): "ab...gh",
    }
    assert {case: abbreviate(*case) for case in table} == table


@pytest.mark.row("W13")
async def test_w13_a_comma_belongs_to_the_command(tmp_path: Path) -> None:
    """Hadoop 3.5 splits the argument there, and fails with more than one comma."""
    said = tmp_path / "said"
    report = await fenced_by(f"shell(printf '%s|' a,b ,c, d,,e > {said})")
    assert report.fenced
    assert len(report.attempts) == 1
    assert said.read_text() == "a,b|,c,|d,,e|"


async def test_secrets_in_a_command_are_in_no_log_and_no_report() -> None:
    text = "shell(test -n x --password hunter2 TOKEN=hunter2 --api-key='hunter2 hunter2'; exit 1)"
    with captured("fencing.") as logs:
        report = await fenced_by(text, {"my.secret": "hunter2", "an.api.password": "hunter2"})
    assert "hunter2" not in repr(logs) + str(report) + report.attempts[0].method
    assert "--password ***" in report.attempts[0].method


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("ipmi -H h --password=abc -x", "ipmi -H h --password=*** -x"),
        ("PASSWORD='a b' power off", "PASSWORD=*** power off"),
        ("fence --password-file /etc/pw", "fence --password-file ***"),
        ("fence --token=-abc --off", "fence --token=*** --off"),
        ("PGPASS=a,b;id", "PGPASS=***;id"),
        ("""pw --password=a'b c'"d" -x""", "pw --password=*** -x"),
        ("curl -H 'X-Token: abc' u", "curl -H 'X-Token: ***' u"),
        ("curl https://root:hunter2@bmc/off", "curl https://root:***@bmc/off"),
        ("reboot (--password hunter2)", "reboot (--password ***)"),
        ('{"api_key": "hunter2", "n": 1}', '{"api_key": ***, "n": 1}'),
        ("token: hunter2, next", "token: ***, next"),
        ("pass --off", "pass --off"),
        ("30 s have passed since", "30 s have passed since"),
        ("exit status 1", "exit status 1"),
        ("true", "true"),
    ],
)
def test_what_looks_secret_is_hidden(command: str, expected: str) -> None:
    assert redact(command) == expected
    assert redact(expected) == expected, "it may pass through several hands"
    assert str(ShellMethod(command)) == f"shell({expected})"
