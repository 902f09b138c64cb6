"""The page of a folder: what is shown of it, and that its viewer could have listed it itself."""

import re
from collections.abc import Mapping
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from ha.conf.keys.security import Mode
from ha.security.caller import Caller, Role, certified_caller, local_caller, unproven
from ha.security.decision import Action, Denied, Policy, claim, decide
from ha.security.rights import CLIENT_PROTOCOL, FILES, HTTP
from ha.web.blocks import MOST_ENTRIES, folder_of
from tests.ha.web.hostile import HOSTILE
from tests.ha.web.recorded import FILES as FIGURES
from tests.ha.web.recorded import listed, listing
from tests.ha.web.served_site import Shown
from tests.ha.web.situations import HEALTHY, SITUATIONS
from tests.ha.web.test_blocks import page_of

FOLDER = "/files/user/a%20b"


async def test_a_folder_is_asked_for_and_shown_row_by_row() -> None:
    shown = Shown(HEALTHY)
    status, page = await page_of(shown, f"{FOLDER}?after=%26x")
    assert status == 200
    asked = {"op": "LISTSTATUS_BATCH", "startAfter": "&x"}
    assert shown.asked == [("/webhdfs/v1/user/a%20b", asked)]
    rows = [re.sub("<[^>]*>", " ", row).split() for row in page.split("<tr>")[2:]]
    assert rows[0][:6] == ["a", "folder/", "directory", "alice", "staff", "drwxrwxrwt"]
    assert rows[0][8:] == ["2026-08-06", "07:06"]
    assert rows[1][:6] == ["part#1?&amp;50%", "file", "alice", "staff", "-rwxr-xr-x+", "5G"]
    assert rows[2][:4] == ["to", "there", "→", "/elsewhere"]
    links = re.findall('href="([^"]*)"', page.partition("<main")[2].partition("<footer")[0])
    assert [unescape(one) for one in links] == [
        "/files/", "/files/user", "/files/user/a%20b/a%20folder",
        "/file?path=/user/a%20b/part%231%3F%2650%25", "?after=to%20there",
    ]  # fmt: skip


@pytest.mark.parametrize(("path", "asked"), [
    ("/files", "/"), ("/files/", "/"), ("/files/a//b/", "/a//b/"), ("/files/%2e%2e/x", "/../x"),
    ("/files/%252F%25", "/%252F%25"), ("/files/%0A%00", "/%0A%00"), ("/files/%FF", "/%25FF"),
    ("/files/%ED%A0%80", "/%25ED%25A0%2580"), ("/files/%C3%A4?after=%FF", "/%C3%A4"),
])  # fmt: skip
async def test_a_path_is_decoded_once_and_coded_once(path: str, asked: str) -> None:
    shown = Shown(HEALTHY)
    assert (await page_of(shown, path))[0] == 200
    assert [page for page, _ in shown.asked] == [f"/webhdfs/v1{asked}"]


async def test_hostile_names_are_texts_and_their_links_are_whole() -> None:
    long = "\N{WATERMELON}" * 700 + "end"
    hostile = listed(HOSTILE, owner=HOSTILE, group=HOSTILE, type=HOSTILE, symlink=HOSTILE)
    rows = (hostile, listed(HOSTILE), listed(HOSTILE, "DIRECTORY"), listed(long), listed(" "))
    status, page = await page_of(Shown(HEALTHY, folder=(200, listing(*rows))), FOLDER)
    assert status == 200
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "%F0%9F%8D%89end" in page
    assert "%3Cscript%3Ealert%281%29%3C/script%3E%22%27%26%E2%80%AExxx" in page
    assert "\u201c \u201d</a>" in page, "a name of spaces alone is no link that is seen"


def test_a_page_is_bounded_and_says_where_the_next_begins() -> None:
    names = [f"f{number:05}" for number in range(MOST_ENTRIES + 5)]
    found: Mapping[str, Any] = folder_of(listing(*map(listed, names)), "/d")
    assert len(found["entries"]) == MOST_ENTRIES
    assert found["after"] == names[MOST_ENTRIES - 1]
    assert folder_of(listing(*map(listed, names[:7])), "/d")["after"] is None
    assert folder_of(listing(*map(listed, names[:7]), remaining=3), "/d")["after"] == names[6]
    assert folder_of(listing(remaining=3), "/d")["after"] is None, "it would be the same page"


def test_a_file_is_its_one_row_and_times_may_be_any() -> None:
    for moment, text in ((2**63 - 1, "292278994-08-17"), (-(2**63), "-292275055-05-16")):
        row: Any = listed("", modificationTime=moment)
        found: Mapping[str, Any] = folder_of(listing(row), "/d/file/")
        (one,) = found["entries"]
        assert (one["path"], one["name"]) == ("/d/file", "file")
        assert one["changed"].startswith(text)


@pytest.mark.parametrize(
    "odd", [{}, {"DirectoryListing": 7}, listing(listed("f", length="7")), listing(7)]  # type: ignore[arg-type]
)  # fmt: skip
async def test_an_odd_answer_is_an_empty_folder(odd: Mapping[str, Any]) -> None:
    assert (
        "There is nothing in it." in (await page_of(Shown(HEALTHY, folder=(200, odd)), FOLDER))[1]
    )


async def test_what_may_not_be_read_is_said_and_so_is_the_state_of_the_cluster() -> None:
    no = (403, {"error": "Permission denied: user=web, access=READ_EXECUTE"})
    status, page = await page_of(Shown(HEALTHY, folder=no), FOLDER)
    assert (status, "Permission denied: user=web" in page) == (403, True)
    away = (503, {"error": "no NameNode of nnha says that it is active"})
    for name, said in (
        ("failover-under-way", "TAKING OVER: nn2 becomes active"),
        ("nobody-active", "NOT SERVING: no NameNode is active"),
    ):
        status, page = await page_of(Shown(SITUATIONS[name], folder=away), FOLDER)
        assert (status, said in page) == (503, True), name
    safe = replace(HEALTHY.namenodes[0], files=replace(FIGURES, safe_mode="it waits for blocks"))
    view = replace(HEALTHY, namenodes=(safe, *HEALTHY.namenodes[1:]))
    status, page = await page_of(Shown(view), FOLDER)
    assert (status, "READ ONLY, in safe mode" in page) == (200, True)
    assert "SERVING" not in (await page_of(Shown(HEALTHY), FOLDER))[1]


OWN_UID = 500
OPERATOR = certified_caller(Role.OPERATOR, "web", "10.0.0.9:1")
VIEWERS: Mapping[str, Caller] = {
    "root": local_caller(0, OWN_UID, "127.0.0.1:1"),
    "the daemon's user": local_caller(OWN_UID, OWN_UID, "127.0.0.1:1").named("hdfs"),
    "a user of the machine": local_caller(1234, OWN_UID, "127.0.0.1:1").named("alice"),
    "from elsewhere": unproven("10.9.9.9:41234"),
    "one that hides a proof": unproven("127.0.0.1:7", provable=True),
}
CERTIFIED: Mapping[str, Caller] = {role: certified_caller(role, "x", "10.0.0.9:1") for role in Role}


def lists(policy: Policy, caller: Caller) -> bool:
    """Return whether a NameNode lists a folder to a caller that says that it is its superuser."""
    found = claim(policy, caller, "hdfs", None, None, CLIENT_PROTOCOL)
    if isinstance(found, Denied):
        return False
    return not isinstance(decide(policy, found, Action(CLIENT_PROTOCOL, "getListing")), Denied)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("certificates", [False, True])
def test_no_viewer_sees_what_it_may_not_list_itself(mode: Mode, *, certificates: bool) -> None:
    """``nnha web`` asks under its certificate or by the kernel's word.

    A viewer with a certificate may also come without it, as anything from elsewhere.
    """
    policy = Policy(mode, OWN_UID, certificates=certificates)
    web = OPERATOR if certificates else VIEWERS["the daemon's user"]
    viewers = {**VIEWERS, **(CERTIFIED if certificates else {})}
    sees = {
        name for name, viewer in viewers.items()
        if lists(policy, web)
        and not isinstance(decide(policy, viewer, Action(HTTP, f"GET {FILES}")), Denied)
    }  # fmt: skip
    may = {name for name, viewer in viewers.items() if lists(policy, viewer)}
    may |= set(CERTIFIED) if lists(policy, VIEWERS["from elsewhere"]) else set()
    assert sees <= may
    assert ("the daemon's user" in sees) is (mode is Mode.INSECURE or not certificates)
    assert ("a user of the machine" in sees) is (mode is Mode.INSECURE)
