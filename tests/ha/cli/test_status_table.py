"""The screen of nnha status: what it says of roles, notices and readiness, and on narrow ones.

What fences edits only is shown as what it is, and lets a failover from a dead host go on.
"""

import dataclasses

import pytest
from rich.console import Console

from fencing.fencer import fence
from fencing.model import FencingOutcome, Target
from fencing.spec import parse_methods
from fencing.ssh_settings import SshSettings
from ha.cli.status.status_table import Screen
from ha.cluster.candidates import failover_blockers
from ha.cluster.files_view import FilesView, files_view
from ha.cluster.status_json import as_json
from ha.cluster.view import ClusterView, ZkfcRow, row_from_znode
from ha.cluster.zookeeper_view import NoticesView
from ha.notices.model import Drain, HistoryEntry, Pause
from tests.ha.cli import schema
from tests.ha.cli.test_cluster_view import GONE, STANDBY, WELL
from tests.ha.notices.test_model import MEMBER, NOON, RECORD

PAUSE = Pause(owner="ann@ops1", reason="new switch", since=NOON, until=None)
DRAIN = Drain(owner="bob@ops1", reason="disk", since=NOON, until=None)
WON = HistoryEntry(12, dataclasses.replace(RECORD, namenode="nn1", previous="nn2"))
LATER = dataclasses.replace(WELL, taken_at="2026-05-13T16:00:00.000Z")


def noted(**notices: object) -> ClusterView:
    return dataclasses.replace(LATER, notices=NoticesView(**notices))  # type: ignore[arg-type]


def screen(view: ClusterView, *, width: int = 160, wide: bool = False) -> list[str]:
    console = Console(width=width, no_color=True)
    with console.capture() as captured:
        console.print(Screen(view, wide=wide))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_the_headline_tells_since_when_and_why() -> None:
    told = screen(noted(history=(WON,)))
    assert told[0].startswith("Cluster ns1   epoch 5   active nn1 for 12d 4h   failover: READY   ")
    assert told[1] == "  because nn1 stopped answering health checks"
    wide = screen(noted(history=(WON,)), wide=True)
    assert "for 12d 4h (since 2026-05-01T12:00:00.000Z)" in wide[0]


def test_a_pause_and_a_drain_have_their_lines_with_what_ends_them() -> None:
    told = screen(noted(pause=PAUSE, drains={"nn2": DRAIN}))
    assert "failover: BLOCKED" in told[0]
    assert (
        "* automatic failover is paused by ann@ops1 until it is ended: new switch  → nnha resume"
        in told
    )
    assert "* nn2 is drained by bob@ops1 until it is ended: disk  → nnha drain nn2 --end" in told


def test_where_nobody_could_take_over_the_reason_stands_first() -> None:
    rows = (WELL.namenodes[0], dataclasses.replace(STANDBY, ready=False, not_ready_reason="late"))
    told = screen(dataclasses.replace(WELL, namenodes=rows))
    assert "failover: BLOCKED" in told[0]
    assert told[1] == "* failover is blocked: nn2: NameNode: not ready: late  → nnha explain"


def test_what_the_election_wants_stands_beside_what_is() -> None:
    lock = dataclasses.replace(WELL.lock, holder="nn2")
    told = screen(dataclasses.replace(WELL, lock=lock))
    rows = {line.split()[0]: line.split() for line in told if line.startswith("nn")}
    assert told[2].split()[:4] == ["NODE", "HOST", "STATE", "WANTED"]
    first = next(line.split() for line in told if line.startswith("nn1"))
    assert first[2:4] == ["active", "standby"]
    assert rows


@pytest.mark.parametrize("width", [160, 100, 80, 60, 40])
def test_a_narrow_screen_loses_columns_and_never_breaks_a_line(width: int) -> None:
    told = screen(noted(members={"nn1": MEMBER}), width=width)
    assert all(len(line) <= width for line in told)
    header = next(line for line in told if line.startswith("NODE"))
    assert "STATE" in header
    assert ("WANTED" in header) is (width >= 60)
    assert sum(line.startswith(("nn1", "nn2")) for line in told) == 4


def test_where_nobody_is_active_the_next_command_is_named() -> None:
    rows = (dataclasses.replace(WELL.namenodes[0], state="standby"), STANDBY)
    nobody = dataclasses.replace(WELL, namenodes=rows)
    assert screen(nobody)[1] == "! no NameNode is active  → nnha explain"


@pytest.mark.parametrize("width", [160, 100, 80, 60, 40])
def test_without_notes_their_heading_is_not_squeezed_in_letter_by_letter(width: int) -> None:
    told = screen(WELL, width=width)
    assert len([line for line in told if line.startswith(("NODE", "ZKFC", "JN "))]) == 3
    assert not any(line in ("N", "O", "T", "E") for line in map(str.strip, told))


def test_a_page_bound_to_another_host_is_replaced_by_the_member_in_zookeeper() -> None:
    row = ZkfcRow("nn1", "h:3", error=GONE, page_only=True)
    shown = row_from_znode(row, NoticesView(members={"nn1": MEMBER}))
    assert (shown.error, shown.health, shown.in_election) == (None, "healthy", True)
    assert shown.note == f"from its znode; status page: {GONE}"


@pytest.mark.parametrize(
    "row",
    [
        ZkfcRow("nn1", "h:3", error=GONE, page_only=False),
        ZkfcRow("nn1", "h:3", error="no answer in 2 s", page_only=True),
    ],
)
def test_a_dead_or_frozen_controller_is_not_taken_for_a_living_one(row: ZkfcRow) -> None:
    assert row_from_znode(row, NoticesView(members={"nn1": MEMBER})) == row


def test_of_a_controller_without_page_and_member_only_its_open_port_is_told() -> None:
    row = ZkfcRow("nn2", "h:3", error=GONE, page_only=True)
    shown = row_from_znode(row, NoticesView(members={"nn1": MEMBER}))
    assert (shown.error, shown.health, shown.in_election) == (None, None, None)
    assert (shown.note or "").startswith("its RPC port is open; it has no page")


def test_the_health_is_not_told_again_where_it_is_why_the_controller_is_out() -> None:
    ill = ZkfcRow("nn1", "h:3", health="unhealthy", health_reason="disk full")
    out = dataclasses.replace(
        ill, in_election=False, out_because="our NameNode is unhealthy: disk full"
    )
    told = screen(dataclasses.replace(WELL, zkfcs=(out, *WELL.zkfcs[1:])), width=200)
    assert sum(line.count("disk full") for line in told) == 1
    told = screen(dataclasses.replace(WELL, zkfcs=(ill, *WELL.zkfcs[1:])), width=200)
    assert sum(line.count("disk full") for line in told) == 1


def test_what_blocks_a_failover_is_nothing_where_somebody_is_fit() -> None:
    assert failover_blockers(WELL) == ()
    assert failover_blockers(noted(drains={"nn2": DRAIN})) == (
        "nn2: drained by bob@ops1 until it is ended: disk",
    )


def test_the_document_is_as_its_schema_says() -> None:
    for view in (WELL, noted(pause=PAUSE, drains={"nn2": DRAIN}, history=(WON,))):
        assert schema.faults("status", as_json(view)) == []


FILES = FilesView(
    safe_mode=None,
    live_datanodes=3,
    stale_datanodes=0,
    dead_datanodes=0,
    capacity_bytes=3 * 1024**4,
    used_bytes=5 * 1024**2,
    remaining_bytes=2 * 1024**4,
    blocks=12_345,
    under_replicated=0,
    missing=0,
    corrupt=0,
)


def with_files(**changes: object) -> ClusterView:
    files = dataclasses.replace(FILES, **changes)  # type: ignore[arg-type]
    rows = (dataclasses.replace(WELL.namenodes[0], files=files), *WELL.namenodes[1:])
    return dataclasses.replace(WELL, namenodes=rows)


def test_datanodes_and_blocks_stand_below() -> None:
    told = screen(with_files())
    assert "DataNodes 3 live   5M used of 3T, 2T left" in told
    assert "Blocks 12,345, under-replicated 0, missing 0, corrupt 0   safe mode off" in told
    assert "healthy" in told[0]
    told = screen(with_files(undrained_datanodes=2))
    assert "DataNodes 3 live, 2 not drained   5M used of 3T, 2T left" in told
    assert "healthy" in told[0]


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"missing": 2}, "! 2 blocks have no usable replica: their files cannot be read whole"),
        ({"dead_datanodes": 1}, "! 1 DataNode is dead: not heard of for too long"),
        ({"under_replicated": 7}, "! 7 blocks have too few replicas; they are being copied"),
        (
            {"safe_mode": "The reported blocks 1\nneed"},
            "! safe mode is on: The reported blocks 1 need",
        ),
    ],
)
def test_what_is_wrong_with_files_is_a_problem(changes: dict[str, object], wanted: str) -> None:
    told = screen(with_files(**changes))
    assert told[1].startswith(f"{wanted}  → nnha ")
    assert "1 problem" in told[0]


def test_a_page_without_sound_numbers_tells_nothing_of_files() -> None:
    sound = dataclasses.asdict(FILES)
    assert files_view(sound) == FILES
    assert files_view(sound | {"missing": "2"}) is None
    assert files_view({"missing": 2}) is None
    assert files_view([]) is None


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
    [("sshfence",), ("sshfence(:22)", "journal-epoch"), ("shell(stonith x)",), ("kill",), ()],
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
