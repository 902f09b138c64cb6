"""Which host's clock is off, by how much, and which daemons have other configuration files."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from ha.cli.explain.doctor.cluster import check_cluster
from ha.cluster import row_notes
from ha.cluster.agreement import ahead, clock_faults, configuration_drift
from ha.cluster.daemon_fields import DaemonView
from ha.cluster.view import JournalNodeRow, ZkfcRow
from tests.ha.cli.test_cluster_view import WELL

HOUR = 3600.0
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("clocks", "faults"),
    [
        ({"h1": 0.0, "h2": 1.5}, []),
        ({"h1": None}, []),
        ({"h1": HOUR, "h2": 0.0}, ["the clock of d0 on h1 is 1h 0m ahead of this machine's"]),
        ({"h1": 0.0, "h2": -HOUR}, ["the clock of d1 on h2 is 1h 0m behind this machine's"]),
        ({"h1": HOUR, "h2": HOUR}, ["this machine's clock is 1h 0m behind those of the"]),
        ({"h1": -HOUR, "h2": -HOUR + 1}, ["this machine's clock is 1h 0m ahead of those of the"]),
        ({"h1": HOUR}, ["the clock of d0 on h1 is 1h 0m ahead of this machine's"]),
        (
            {"h1": HOUR, "h2": HOUR, "h3": 2 * HOUR},
            [
                "this machine's clock is 1h 0m behind those of the",
                "the clock of d2 on h3 is 1h 0m ahead of the other hosts'",
            ],
        ),
    ],
    ids=str,
)
def test_the_clock_that_is_off_is_the_one_that_few_hosts_share(
    clocks: dict[str, float | None], faults: list[str]
) -> None:
    found = [(f"d{number}", host, skew) for number, (host, skew) in enumerate(clocks.items())]
    told = list(clock_faults(found))
    assert len(told) == len(faults)
    assert all(one.startswith(text) for one, text in zip(told, faults, strict=True))


def test_two_daemons_of_one_host_have_one_vote() -> None:
    found = [("NameNode nn1", "h1", HOUR), ("ZKFC of nn1", "h1", HOUR), ("NameNode nn2", "h2", 0.0)]
    assert [one.split(" is ")[0] for one in clock_faults(found)] == [
        "the clock of NameNode nn1 on h1",
        "the clock of ZKFC of nn1 on h1",
    ]


@pytest.mark.parametrize("seconds", [-HOUR, -2.0, 0.0, 2.0, HOUR])
def test_a_date_is_compared_as_cut_to_whole_seconds(seconds: float) -> None:
    date = format_datetime(NOON + timedelta(seconds=seconds), usegmt=True)
    later = NOON + timedelta(seconds=0.4)
    skew = ahead(date, NOON, later)
    assert skew is not None
    assert abs(skew - seconds) <= 1.0
    assert ahead("", NOON, later) is None
    assert ahead("yesterday", NOON, later) is None


def daemon(config_hash: str, *keys: str) -> DaemonView:
    return DaemonView("1", "c", 1, None, config_hash, (), keys)


DRIFTS = {
    # of most daemons, of the one that differs, what is named
    "another value": (["a=1", "b=1"], ["a=1", "b=2"], " (b): "),
    "one more key": (["a=1"], ["a=1", "b=2"], " (b): "),
    "one key less": (["a=1", "b=2"], ["a=1"], " (b): "),
    "several, in order": (["b=1", "a=1"], ["a=2", "b=2"], " (a, b): "),
    "too many": (
        [f"k{n}=1" for n in range(7)], [f"k{n}=2" for n in range(7)],
        " (k0, k1, k2, k3, k4 and 2 more): ",
    ),
    "a value that is not shown": (["a=1", "p=0"], ["p=0", "a=1"], " (in a secret): "),
    "an older daemon does not say": (["a=1"], [], ": "),
    "all older": ([], [], ": "),
}  # fmt: skip


@pytest.mark.parametrize("case", DRIFTS)
def test_the_keys_that_differ_are_named(case: str) -> None:
    usual, other, named = DRIFTS[case]
    rows = tuple(replace(row, daemon=daemon("a", *usual)) for row in WELL.namenodes)
    journal = (JournalNodeRow("j1:1", daemon=daemon("b", *other)),)
    drift = configuration_drift(replace(WELL, namenodes=rows, journalnodes=journal))
    assert drift is not None
    assert drift.startswith(f"configuration files differ{named}JournalNode j1:1 read")


def test_daemons_with_other_files_are_named_by_status_and_doctor() -> None:
    same = daemon("a")
    rows = tuple(replace(row, daemon=same) for row in WELL.namenodes)
    journal = (JournalNodeRow("j1:1", daemon=same), JournalNodeRow("j2:1", daemon=daemon("b")))
    view = replace(WELL, namenodes=rows, journalnodes=journal)
    assert configuration_drift(replace(view, journalnodes=journal[:1])) is None
    view = replace(view, zkfcs=(ZkfcRow("nn1", "h:3", daemon=daemon("c")),))
    drift = configuration_drift(view)
    assert drift is not None
    assert "ZKFC of nn1, JournalNode j2:1 read others than the other 3" in drift
    assert any(one.startswith(f"{drift}  → ") for one in row_notes.warnings(view))
    (found,) = [one for one in check_cluster(view) if one.check == "configuration"]
    assert (found.found, found.next != "") == (drift, True)


def test_status_names_the_clock_of_a_host() -> None:
    rows = (replace(WELL.namenodes[0], clock_ahead_seconds=HOUR), *WELL.namenodes[1:])
    (told,) = [one for one in row_notes.warnings(replace(WELL, namenodes=rows)) if "clock" in one]
    assert "is 1h 0m ahead of this machine's  → run NTP" in told
