"""The lines of ls, du and stat."""

import time
from pathlib import Path

import pytest

import files.cli
from files.cli.forms import Entry, du_lines, formatted, in_order, ls_lines, size_text
from tests.ha.cli.schema import faults

FILE = Entry(
    "/d/a b", "a b", "file", 1536, 0o640, "bob", "staff", 86_400_000, 0, 3, 1 << 27, acl=True
)  # fmt: skip
FOLDER = Entry("/d", "/d", "directory", 0, 0o1777, "hdfs", "supergroup", 0)


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def test_lines_of_ls_stand_in_columns() -> None:
    widths = [3, 0, 0, 10]
    lines = list(ls_lines([FILE, FOLDER], widths, human=False))
    assert lines == [
        "-rw-r-----+  3 bob  staff            1536 1970-01-02 00:00 a b",
        "drwxrwxrwt   - hdfs supergroup          0 1970-01-01 00:00 /d",
    ]
    assert " 1.5 K " in next(ls_lines([FILE], widths, human=True))


def test_names_are_in_the_order_of_hadoops_shell() -> None:
    """It compares URIs, in which a space is %20, and comes after a dollar sign."""
    names = ["/a$", "/a b", "/a!", "/a#", "/a", "/ü", "/a%b", "/a'"]
    entries = [Entry(name, name, "file") for name in names]
    found = [one.path for one in in_order(entries)]
    assert found == ["/a", "/a!", "/a$", "/a b", "/a#", "/a%b", "/a'", "/ü"]
    assert [one.path for one in in_order(entries, backwards=True)] == found[::-1]


def test_the_newest_and_the_largest_come_first() -> None:
    old, new = Entry("/o", "/o", "file", 9, modified=1), Entry("/n", "/n", "file", 1, modified=2)
    assert in_order([old, new], "time") == [new, old]
    assert in_order([new, old], "size") == [old, new]
    assert in_order([new, old], "size", backwards=True) == [new, old]


def test_lines_of_du_are_as_wide_as_their_widest() -> None:
    lines = list(du_lines([(5, 15, "/a"), (1_048_576, 3_145_728, "/b")], human=False))
    assert lines == ["5        15       /a", "1048576  3145728  /b"]
    assert list(du_lines([(1_048_576, 0, "/b")], human=True)) == ["1 M  0  /b"]


def test_a_format_of_stat() -> None:
    form = "%a %A %b %F %g %n %o %r %u %x %X %y %Y %% %q"
    assert formatted(form, FILE) == (
        "640 rw-r----- 1536 regular file staff a b 134217728 3 bob 1970-01-01 00:00:00 0 "
        "1970-01-02 00:00:00 86400000 % q"
    )
    assert formatted("%F|100%", FOLDER) == "directory|100"


def test_sizes_are_rounded_up_from_the_half() -> None:
    sizes = {1023: "1023", 1024: "1 K", 1280: "1.3 K", 1_048_575: "1.0 M", 3 << 30: "3 G"}
    assert {size: size_text(size, human=True) for size in sizes} == sizes


def test_any_time_that_a_client_may_set_has_a_form() -> None:
    odd = Entry("/a", "/a", "file", modified=2**64 - 1, accessed=-1)
    assert " 584556019-" in next(ls_lines([odd], [0, 0, 0, 0], human=False))
    assert odd.as_json()["accessed"] == "1969-12-31T23:59:59Z"


def test_an_entry_is_as_its_schema_says() -> None:
    document = {
        "apiVersion": "nnha/v1", "command": "fs ls", "nameservice": "ns1", "exit_code": 3,
        "results": [FILE.as_json(), FOLDER.as_json()], "failures": [],
    }  # fmt: skip
    assert faults(Path(files.cli.__file__).parent / "schemas" / "fs.json", document) == []
