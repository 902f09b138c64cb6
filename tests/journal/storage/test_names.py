"""What names of files and journals mean."""

import pytest

from journal.model import Epoch, TxId
from journal.storage import layout

FIRST = "edits_inprogress_0000000000000000007"
FINAL = "edits_0000000000000000007-0000000000000000009"

MEANINGS: dict[str, layout.EditsFile | None] = {
    "edits_7-9": layout.FinalizedFile(TxId(7), TxId(9)),
    "edits_7-7": layout.FinalizedFile(TxId(7), TxId(7)),
    "edits_1-1": layout.FinalizedFile(TxId(1), TxId(1)),
    "edits_7-6": None,
    "edits_0-1": None,
    "edits_7-9.": None,
    "edits_7-9.tmp": layout.UnfinishedFile(),
    "edits_inprogress_7": layout.InProgressFile(TxId(7)),
    "edits_inprogress_7.epoch=3": layout.DownloadedFile(TxId(7), Epoch(3)),
    "edits_inprogress_7.epoch=": None,
    "last-promised-epoch.tmp": layout.UnfinishedFile(),
    "last-promised-epoch": None,
}


@pytest.mark.parametrize(("name", "means"), MEANINGS.items(), ids=list(MEANINGS))
def test_what_a_file_of_edits_is(name: str, means: layout.EditsFile | None) -> None:
    assert layout.meaning(name) == means


#   the last edit that a file is known to have
REMAINS = {
    f"{FIRST}.empty": 7,
    f"{FIRST}.stale": 7,
    f"{FIRST}.corrupt": 7,
    f"{FIRST}.trash": 7,
    f"{FIRST}.epoch=3": 7,
    f"{FINAL}.stale": 9,
    f"{FINAL}.corrupt": 9,
    f"{FINAL}.trash": 9,
    FIRST: None,
    FINAL: None,
    f"{FIRST}.tmp": None,
    f"{FIRST}.epoch=": None,
    f"{FIRST}.stale.stale": None,
    f"{FIRST}.anything": None,
    "VERSION": None,
}


@pytest.mark.parametrize(("name", "txid"), REMAINS.items(), ids=list(REMAINS))
def test_up_to_where_a_file_that_was_left_over_has_edits(name: str, txid: int | None) -> None:
    assert layout.remains_of(name) == txid


STARTS = {"7": 7, "0007": 7, "9" * 19: 10**19 - 1, "9" * 20: None, "": None, "7x": None, "-7": None}


@pytest.mark.parametrize(("name", "txid"), STARTS.items(), ids=list(STARTS))
def test_a_record_of_a_segment_is_named_by_its_first_edit(name: str, txid: int | None) -> None:
    assert layout.segment_start(name) == txid


def test_names_that_are_made_are_understood() -> None:
    assert layout.in_progress_name(TxId(7)) == FIRST
    assert layout.download_name(TxId(7), Epoch(3)) == f"{FIRST}.epoch=3"
    assert layout.aside_name(FINAL, "stale") == f"{FINAL}.stale"


JOURNALS = {
    "ns1": None,
    "x": None,
    "x" * 200: None,
    "Ns-1_a.b": None,
    "": "empty",
    ".": "begins with a dot",
    ".ns1": "begins with a dot",
    "x" * 201: "longer than 200 bytes",
    "\u00e9" * 101: "longer than 200 bytes",
    "\u00e9": "other characters",
    "a b": "other characters",
    "ns1\n": "other characters",
}


@pytest.mark.parametrize(("name", "why"), JOURNALS.items(), ids=[ascii(name) for name in JOURNALS])
def test_which_names_a_journal_may_have(name: str, why: str | None) -> None:
    told = layout.why_bad_journal_id(name)
    assert told is None if why is None else told is not None and why in told


@pytest.mark.parametrize("long", ["." + "x" * 150, " " + "x" * 150], ids=["dot", "blank"])
def test_a_long_bad_name_is_shown_in_part(long: str) -> None:
    assert f" {long[:100]!r} " in str(layout.why_bad_journal_id(long))
