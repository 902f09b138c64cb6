"""What is written into a hosts file when a DataNode leaves or returns."""

import json
import os
from pathlib import Path

import pytest

from ha.cli.operate.leave import replace
from ha.cli.operate.plan.hosts_file import json_with, text_with
from tests.needs import OTHER_USER

TEXT_CASES = {
    # before, host, excluded, after
    "an empty file": ("", "dn1", True, "dn1\n"),
    "behind the others": ("# away\ndn2\n", "dn1", True, "# away\ndn2\ndn1\n"),
    "once": ("dn1\n", "dn1", True, "dn1\n"),
    "in any case of letters": ("DN1\n", "dn1", True, "dn1\n"),
    "without a line's end": ("dn2", "dn1", True, "dn2\ndn1\n"),
    "out of its line": ("dn2 dn1 dn3\n", "dn1", False, "dn2 dn3\n"),
    "a line of its own goes": ("dn2\ndn1\n", "dn1", False, "dn2\n"),
    "its comment stays": ("dn1 # broken fan\n", "dn1", False, "# broken fan\n"),
    "a comment is no entry": ("# dn1\n", "dn1", False, "# dn1\n"),
    "another port": ("dn1:1\n", "dn1:2", False, "dn1:1\n"),
    "what is not there": ("dn2\n", "dn1", False, "dn2\n"),
}


@pytest.mark.parametrize(
    ("before", "host", "excluded", "after"), TEXT_CASES.values(), ids=TEXT_CASES
)
def test_an_exclude_list(before: str, host: str, after: str, *, excluded: bool) -> None:
    assert text_with(before, host, excluded=excluded) == after


OTHER = {"hostName": "dn2", "upgradeDomain": "u"}
JSON_CASES = {
    # entries, host, state, until, entries
    "a new one": ([OTHER], "dn1", "DECOMMISSIONED", None,
                  [OTHER, {"hostName": "dn1", "adminState": "DECOMMISSIONED"}]),
    "with its port": ([], "dn1:9866", "IN_MAINTENANCE", 5,
                      [{"hostName": "dn1", "port": 9866, "adminState": "IN_MAINTENANCE",
                        "maintenanceExpireTimeInMS": 5}]),
    "what else is said of it stays": (
        [{"hostName": "DN1", "upgradeDomain": "u", "adminState": "NORMAL"}], "dn1",
        "DECOMMISSIONED", None,
        [{"hostName": "DN1", "upgradeDomain": "u", "adminState": "DECOMMISSIONED"}]),
    "an old end of maintenance goes": (
        [{"hostName": "dn1", "adminState": "IN_MAINTENANCE", "maintenanceExpireTimeInMS": 5}],
        "dn1", "IN_MAINTENANCE", None, [{"hostName": "dn1", "adminState": "IN_MAINTENANCE"}]),
    "it stays on the list of those that may register": (
        [OTHER, {"hostName": "dn1", "adminState": "DECOMMISSIONED"}], "dn1", "NORMAL", None,
        [OTHER, {"hostName": "dn1", "adminState": "NORMAL"}]),
    "it goes from a list that lets all others in": (
        [{"hostName": "dn1", "adminState": "DECOMMISSIONED"},
         {"hostName": "dn2", "adminState": "IN_MAINTENANCE"}], "dn1", "NORMAL", None,
        [{"hostName": "dn2", "adminState": "IN_MAINTENANCE"}]),
    "the last one that leaves": (
        [{"hostName": "dn1", "adminState": "DECOMMISSIONED"}], "dn1", "NORMAL", None, []),
    "one that is not named is in service": ([OTHER], "dn1", "NORMAL", None, [OTHER]),
    "another port": ([{"hostName": "dn1", "port": 1}], "dn1:2", "NORMAL", None,
                     [{"hostName": "dn1", "port": 1}]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("before", "host", "state", "until", "after"), JSON_CASES.values(), ids=JSON_CASES
)
def test_a_list_in_json(
    before: object, host: str, state: str, until: int | None, after: object
) -> None:
    assert json.loads(json_with(json.dumps(before), host, state, until)) == after


def test_a_file_that_is_not_there_yet_is_an_empty_list() -> None:
    assert json.loads(json_with("", "dn1", "DECOMMISSIONED")) == [
        {"hostName": "dn1", "adminState": "DECOMMISSIONED"}
    ]


@pytest.mark.parametrize("text", ["{", "{}", "[1]"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"Expecting|list"):
        json_with(text, "dn1", "NORMAL")


@OTHER_USER.mark
def test_the_file_keeps_its_owner_its_mode_and_the_link_to_it(tmp_path: Path) -> None:
    """Root edits it, and the NameNode reads it as another user; a link leads to where it lies."""
    file, link = tmp_path / "real", tmp_path / "link"
    file.write_text("dn1\n")
    file.chmod(0o640)
    os.chown(file, 1234, 1235)
    link.symlink_to(file)
    replace(link, "dn2\n")
    seen = file.stat()
    assert (link.is_symlink(), file.read_text()) == (True, "dn2\n")
    assert (seen.st_uid, seen.st_gid, seen.st_mode & 0o777) == (1234, 1235, 0o640)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link", "real"]


def test_a_new_file_can_be_read_by_all(tmp_path: Path) -> None:
    replace(tmp_path / "exclude", "dn2\n")
    assert (tmp_path / "exclude").stat().st_mode & 0o777 == 0o644


def test_a_file_that_cannot_be_replaced_stays_and_nothing_is_left_over(tmp_path: Path) -> None:
    (tmp_path / "exclude").mkdir()
    with pytest.raises(OSError, match="directory"):
        replace(tmp_path / "exclude", "dn2\n")
    assert [one.name for one in tmp_path.iterdir()] == ["exclude"]
