"""What fences edits only is shown as what it is, and lets a failover from a dead host go on."""

import dataclasses

import pytest
from rich.console import Console

from fencing.fencer import fence
from fencing.model import FencingOutcome, Target
from fencing.spec import parse_methods
from fencing.ssh_settings import SshSettings
from ha.cli.status.status_table import Screen
from tests.ha.cli.test_cluster_view import WELL


def notes(*methods: str) -> list[str]:
    """Return the screen's notes when the controller of nn1 has these methods for its peer."""
    first, second = WELL.zkfcs
    view = dataclasses.replace(
        WELL, zkfcs=(dataclasses.replace(first, fencing_methods=methods), second)
    )
    console = Console(width=200, no_color=True)
    with console.capture() as captured:
        console.print(Screen(view))
    return [line for line in captured.get().splitlines() if "fences edits only" in line]


@pytest.mark.row("W3")
@pytest.mark.parametrize(
    "methods",
    [("journal-epoch",), ("shell(/bin/true)",), ("shell(true)", "journal-epoch")],
    ids=str,
)
def test_w3_the_status_says_so_where_nothing_proves_the_old_active_gone(
    methods: tuple[str, ...],
) -> None:
    (told,) = notes(*methods)
    assert told.startswith("* the ZKFC of nn1 fences edits only")
    assert "until its lease ends" in told


@pytest.mark.row("W3")
@pytest.mark.parametrize(
    "methods",
    [("sshfence(:22)",), ("sshfence(:22)", "journal-epoch"), ("shell(stonith x)",), ("kill",), ()],
    ids=str,
)
def test_w3_it_says_nothing_where_some_method_could(methods: tuple[str, ...]) -> None:
    assert notes(*methods) == []


@pytest.mark.row("W3")
async def test_w3_a_dead_host_does_not_block_the_failover_and_nothing_is_claimed() -> None:
    report = await fence(
        parse_methods("sshfence\njournal-epoch"),
        Target("ns1", "nn1", "192.0.2.1", 8020),
        environment={},
        method_timeout_seconds=1.0,
        total_timeout_seconds=10.0,
        ssh=SshSettings(connect_timeout_seconds=0.5),
    )
    ssh, epoch = report.attempts
    assert ssh.outcome in (FencingOutcome.FAILED, FencingOutcome.TIMED_OUT)
    assert epoch.outcome is FencingOutcome.SUCCEEDED
    assert report.fenced
    assert not report.proven_gone
    assert report.duration_seconds < 5
