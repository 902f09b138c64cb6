"""Marks of pages, what counts as the same output, and the name server's answers."""

import re
import socket
import struct
from typing import Final

import pytest

from ha.cluster.row_notes import own_lateness
from ha.record import replace
from tests import ROOT
from tests.ha.cli.test_cluster_view import WELL
from tests.hosts import pages
from tests.hosts.name_server import answer
from tests.hosts.page import ALL, BadMarkError, Kind, Step, shape, shown, steps

FENCED = "```\na\nb\n```\n"
LATENESS = tuple(own_lateness(replace(WELL, own_start_seconds=9.0, own_delay_seconds=9.0)))
"""What commands say of themselves on a busy machine."""


def test_a_mark_names_kind_hosts_user_and_file() -> None:
    text = f"x\n<!-- lab: file on host1 host2 as hdfs: /etc/x -->\n{FENCED}"
    assert list(steps(text)) == [Step(Kind.FILE, ("host1", "host2"), "hdfs", "/etc/x", "a\nb\n", 2)]
    (step,) = steps(f"<!-- lab: run on all client -->\n{FENCED}")
    assert (step.hosts, step.user, step.path) == ((*ALL, "client"), "root", "")


@pytest.mark.parametrize(
    "text",
    [
        f"<!-- lab: walk on host1 -->\n{FENCED}",
        f"<!-- lab: run -->\n{FENCED}",
        f"<!-- lab: run on host1 as -->\n{FENCED}",
        f"<!-- lab: run on host1 -->\n\n{FENCED}",
    ],
)
def test_a_mark_that_would_be_passed_over_is_refused(text: str) -> None:
    with pytest.raises(BadMarkError, match="line 1"):
        list(steps(text))


def test_a_command_says_two_things_of_its_own_lateness() -> None:
    assert [said.split()[3] for said in LATENESS] == ["took", "stood"]


def test_commands_and_what_is_shown_below_them() -> None:
    assert list(shown("$ a b\nx\ny\n$ c\n")) == [("a b", "x\ny\n"), ("c", "")]


@pytest.mark.parametrize(
    ("page", "run"),
    [
        ("epoch 1   12 s  756G", "epoch 20 0.3 s 1.5G\n"),
        ("at 2026-11-28T14:49:51.653Z", "at 2027-01-01T00:00:00.000Z"),
        ("lock 0x10001", "lock 0xffe"),
        ("11 s ago", "3m 53s ago"),
        ("11 s ago", "1d 2h 0m ago"),
        (f"serial {'0b' * 20}", f"serial {'fe' * 20}"),
        *(("a", f"a\n* {said}") for said in LATENESS),
    ],
)
def test_what_differs_from_run_to_run_is_the_same(page: str, run: str) -> None:
    assert shape(page) == shape(run)


@pytest.mark.parametrize("run", ["healthy b", "a healthy", "healthy\na", "a\n! b"])
def test_other_words_and_lines_are_not(run: str) -> None:
    assert shape("healthy\na healthy" if "\n" in run else "healthy a") != shape(run)


def test_the_guide_has_marks_of_every_kind() -> None:
    found = list(steps((ROOT / "docs" / "operations.md").read_text()))
    assert {step.kind for step in found} == set(Kind)


_ALSO_WITHOUT_HOSTS: Final = ("nnha web                              # listens",)
"""What a page says of one machine, with the first words of its block."""


@pytest.mark.parametrize(
    "name",
    ["operations.md", "metrics.md", "web.md", "security.md", "migration.md", "kerberos.md"],
)
def test_each_block_of_commands_is_carried_out(name: str) -> None:
    text = (pages.DOCS / name).read_text()
    assert list(steps(text))
    for before, block in re.findall(
        r"^([^\n]*)\n```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL
    ):
        is_command = re.search(r"^(\$ )?nnha ", block, re.MULTILINE) is not None
        marked = before.startswith("<!-- lab: ")
        assert marked or not is_command or block.startswith(_ALSO_WITHOUT_HOSTS), block


def _query(name: str, kind: int = 1) -> bytes:
    labels = b"".join(bytes((len(each),)) + each.encode() for each in name.split("."))
    return struct.pack("!6H", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!2H", kind, 1)


def test_the_name_server_answers_by_its_mode() -> None:
    known = answer(_query("host2"), "right")
    assert known[:2] == struct.pack("!H", 7)
    assert known.endswith(socket.inet_aton("10.78.0.2"))
    assert answer(_query("host2", kind=28), "right")[6:8] == b"\0\0", "no IPv6 address"
    assert answer(_query("host2", kind=28), "right")[3] & 15 == 0
    for unknown in (answer(_query("host9"), "right"), answer(_query("host2"), "wrong")):
        assert unknown[3] & 15 == 3
