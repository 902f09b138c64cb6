"""What a method is given, how long it may take, and what is reported; nothing is started here."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType

import pytest

from fencing.fencer import fence, load_code_of
from fencing.model import FencingOutcome, FencingReport, ShellMethod, Target
from fencing.shell import Finished, NotStarted, Overran
from fencing.spec import parse_methods
from fencing.ssh_verdict import Port, judge_killed, judge_port
from tests.log_lines import captured

TARGET = Target("ns1", "nn1", "dummyhost", 1234)
TWO = (ShellMethod("first"), ShellMethod("second"))


class Commands:
    """In the place of a shell: remembers how long each command may take, and how it ends."""

    def __init__(self, *statuses: int) -> None:
        self._statuses = iter(statuses)
        self.allowed_seconds: list[float] = []

    async def __call__(
        self, command: str, environment: Mapping[str, str], *, deadline_seconds: float
    ) -> Finished:
        self.allowed_seconds.append(deadline_seconds)
        return Finished(next(self._statuses), f"{command} of {len(environment)} variables")


async def fenced_by(
    commands: Commands,
    target: Target = TARGET,
    method_timeout_seconds: float = 1000.0,
    total_timeout_seconds: float = 2000.0,
) -> FencingReport:
    return await fence(
        TWO,
        target,
        environment={},
        method_timeout_seconds=method_timeout_seconds,
        total_timeout_seconds=total_timeout_seconds,
        run=commands,
    )


@pytest.mark.parametrize(
    "target",
    [
        replace(TARGET, host="$(id)"),
        replace(TARGET, nameservice="$(id)"),
        replace(TARGET, namenode="$(id)"),
    ],
    ids=["host", "nameservice", "NameNode"],
)
async def test_a_target_that_would_steer_a_shell_is_given_to_no_method(target: Target) -> None:
    commands = Commands()
    report = await fenced_by(commands, target)
    assert not commands.allowed_seconds
    assert [one.outcome for one in report.attempts] == [FencingOutcome.NOT_RUN] * 2
    assert "$(id)" in report.attempts[0].detail
    assert not report.fenced


@pytest.mark.parametrize(
    ("method", "total", "least", "most"),
    [(1000.0, 2000.0, 1000.0, 1000.0), (2000.0, 1000.0, 500.0, 1000.0)],
    ids=["its own limit", "what is left of the total"],
)
async def test_a_method_may_take(method: float, total: float, least: float, most: float) -> None:
    commands = Commands(1, 1)
    await fenced_by(commands, method_timeout_seconds=method, total_timeout_seconds=total)
    first, second = commands.allowed_seconds
    assert least <= second <= first <= most


@pytest.mark.parametrize(("method", "total"), [(0.0, 10.0), (10.0, 0.0)])
async def test_without_time_no_method_runs(method: float, total: float) -> None:
    commands = Commands()
    report = await fenced_by(commands, method_timeout_seconds=method, total_timeout_seconds=total)
    assert {one.outcome for one in report.attempts} == {FencingOutcome.NOT_RUN}
    assert "run out" in report.attempts[0].detail


async def test_every_attempt_is_told_with_its_number_and_how_long_it_took() -> None:
    with captured("fencing.") as logs:
        report = await fenced_by(Commands(3, 0))
    assert [one["event"] for one in logs] == [
        "fencing.started", "fencing.attempt", "fencing.attempt", "fencing.finished"]  # fmt: skip
    assert [(one["method"], one["number"]) for one in logs[1:3]] == [
        ("shell(first)", "1/2"), ("shell(second)", "2/2")]  # fmt: skip
    assert [one.detail for one in report.attempts] == ["exit status 3", "exit status 0"]
    assert sum(one.duration_seconds for one in report.attempts) <= report.duration_seconds
    assert " was fenced in " in str(report)
    assert " could not be fenced in " in str(await fenced_by(Commands(3, -9)))


ENDS: dict[str, tuple[Finished | Overran | NotStarted, FencingOutcome, str]] = {
    # how a command ends, and what is reported of that
    "well": (Finished(0, "said"), FencingOutcome.SUCCEEDED, "exit status 0"),
    "badly": (Finished(3, "said"), FencingOutcome.FAILED, "exit status 3"),
    "killed": (Finished(-9, "said"), FencingOutcome.FAILED, "killed by signal 9"),
    "too late": (Overran("said"), FencingOutcome.TIMED_OUT, "killed, with all processes"),
    "before it began": (NotStarted("no bash"), FencingOutcome.NOT_RUN, "no bash"),
}


@pytest.mark.parametrize("case", ENDS)
async def test_how_a_command_ends_is_told(case: str) -> None:
    end, outcome, detail = ENDS[case]

    async def run(
        command: str, environment: Mapping[str, str], *, deadline_seconds: float
    ) -> Finished | Overran | NotStarted:
        return end

    report = await fence(
        (ShellMethod("one"),),
        TARGET,
        environment={},
        method_timeout_seconds=10.0,
        total_timeout_seconds=10.0,
        run=run,
    )
    (attempt,) = report.attempts
    assert (attempt.outcome, attempt.output) == (
        outcome, "" if isinstance(end, NotStarted) else "said")  # fmt: skip
    assert attempt.detail.startswith(detail)


async def test_a_method_that_crashes_is_told_and_the_next_one_has_its_turn() -> None:
    with captured("fencing.method_crashed") as logs:
        report = await fenced_by(Commands())
    assert [one.outcome for one in report.attempts] == [FencingOutcome.FAILED] * 2
    assert [one["method"] for one in logs] == ["shell(first)", "shell(second)"]


@pytest.mark.parametrize(
    ("methods", "loaded"), [("kill", False), ("kill\nsshfence", True)], ids=["none", "one"]
)
def test_the_code_of_ssh_is_loaded_where_a_method_needs_it(
    methods: str, monkeypatch: pytest.MonkeyPatch, *, loaded: bool
) -> None:
    for name in ("fencing.ssh", "invoke"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
        monkeypatch.delitem(sys.modules, name)
    load_code_of(parse_methods(methods))
    assert ("fencing.ssh" in sys.modules) == loaded
    assert sys.modules.get("invoke", "not asked for") == (None if loaded else "not asked for")


@pytest.mark.parametrize("from_here", Port)
def test_a_port_that_listens_on_the_host_is_not_fenced(from_here: Port) -> None:
    for told in (judge_port(Port.LISTENS, from_here), judge_port(from_here, Port.LISTENS)):
        assert told.outcome is FencingOutcome.FAILED
        assert told.detail.startswith("a process listens")


def test_whom_fuser_has_killed_is_named_where_it_names_anybody() -> None:
    named = judge_killed(0, frozenset({7, 5}), frozenset())
    assert named is not None
    assert named.detail == "killed process 5, 7"
    assert judge_killed(0, frozenset(), frozenset({7})) is None, (
        "only the port can show that it ended"
    )
