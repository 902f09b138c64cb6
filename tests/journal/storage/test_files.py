"""The files of a JournalNode: names, small files, segments, and their damage."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal.core.replies import Manifest, Prepared, Promised
from journal.core.requests import Format, GetEditLogManifest, PrepareRecovery
from journal.core.state import Decision
from journal.errors import NotFormatted, OutOfSync, StorageFailed
from journal.frame import file_header
from journal.model import NO_EPOCH, NO_TXID, Epoch, NamespaceInfo, Segment, TxId
from journal.storage import layout, small_files
from journal.storage.files import RealFiles
from journal.storage.segment_file import SegmentCheck, inspect
from tests.journal.core import requests_of
from tests.journal.core.requests_of import segment

P = Path("x")
FIRST = "edits_inprogress_0000000000000000001"

NAMES = {
    "edits_0000000000000000001-0000000000000000005": layout.FinalizedFile(TxId(1), TxId(5)),
    "edits_0000000000000000005-0000000000000000001": None,
    "edits_0000000000000000000-0000000000000000001": None,
    FIRST: layout.InProgressFile(TxId(1)),
    FIRST + ".epoch=7": layout.DownloadedFile(TxId(1), Epoch(7)),
    FIRST + ".empty": None,
    FIRST + ".stale": None,
    FIRST + ".tmp": layout.UnfinishedFile(),
    "edits_1-2.trash": None,
    "edits_\uff11-2": None,
    "VERSION": None,
}


@pytest.mark.parametrize(("name", "means"), NAMES.items(), ids=list(NAMES))
def test_file_names_mean_what_hadoop_means(name: str, means: object) -> None:
    assert layout.meaning(name) == means


def test_names_are_hadoops() -> None:
    assert Segment(TxId(1), TxId(12), finalized=True).name() in (
        "edits_0000000000000000001-0000000000000000012"
    )
    assert layout.download_name(TxId(1), Epoch(7)) == FIRST + ".epoch=7"


@pytest.mark.parametrize("name", ["", "a/b", "../x", ".hidden", "x" * 201, "a\0b"])
def test_a_journals_name_cannot_leave_its_folder(name: str) -> None:
    assert layout.why_bad_journal_id(name) is not None


@given(
    st.builds(
        NamespaceInfo,
        st.integers(-100, -1),
        st.integers(1, 2**31),
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40).map(
            lambda text: text.strip() or "x"
        ),
        st.integers(0, 2**62),
        st.just("BP-1-127.0.0.1-1"),
    )
)
def test_version_survives_any_cluster_id(namespace: NamespaceInfo) -> None:
    assert small_files.parse_version(P, small_files.version_text(namespace)) == namespace


def test_hadoops_version_file_reads() -> None:
    text = (
        b"#Tue Nov 21 10:00:00 UTC 2023\nnamespaceID=1891\nclusterID=CID-8a\\:b\ncTime=0\n"
        b"storageType=JOURNAL_NODE\nlayoutVersion=-65\n"
    )
    assert small_files.parse_version(P, text) == NamespaceInfo(-65, 1891, "CID-8a:b", 0)


BAD_VERSIONS = [b"", b"namespaceID=x\nclusterID=c\ncTime=0\nlayoutVersion=-65\n"]


@pytest.mark.parametrize("data", BAD_VERSIONS)
def test_a_corrupt_version_is_named(data: bytes) -> None:
    with pytest.raises(StorageFailed, match=r"x is corrupt"):
        small_files.parse_version(P, data)


def test_anothers_folder_is_not_ours() -> None:
    with pytest.raises(StorageFailed, match="belongs to a NAME_NODE"):
        small_files.parse_version(P, b"storageType=NAME_NODE\n")


def test_epochs_and_committed_read_as_hadoop_writes_them() -> None:
    assert small_files.epoch_text(Epoch(12)) == b"12\n"
    assert small_files.parse_epoch(P, b"12\n") == 12
    assert small_files.parse_epoch(P, None) == 0
    for bad in (b"", b"-1\n", b"1.5", b"9" * 20):
        with pytest.raises(StorageFailed, match="corrupt"):
            small_files.parse_epoch(P, bad)
    assert small_files.parse_committed(P, small_files.committed_bytes(TxId(77))) == 77
    assert small_files.parse_committed(P, b"") == small_files.parse_committed(P, None) == NO_TXID
    for bad in (b"123", b"123456789"):
        with pytest.raises(StorageFailed, match="corrupt"):
            small_files.parse_committed(P, bad)


def test_a_decision_is_a_delimited_record_about_its_segment() -> None:
    decision = Decision(segment(5, 9, finalized=True), Epoch(3))
    data = small_files.decision_bytes(decision)
    unchecked = data[: data[0] + 1]
    assert data[len(unchecked) :].startswith(b"\ncrc32=")
    # The last two are files of ours from before the checksum, and of Hadoop.
    for whole in (data, unchecked, unchecked + b"\ndebug text\n"):
        assert small_files.parse_decision(P, TxId(5), whole) == decision
    with pytest.raises(StorageFailed, match="is about segment 5"):
        small_files.parse_decision(P, TxId(6), data)
    for cut in set(range(len(data))) - {len(unchecked)}:
        with pytest.raises(StorageFailed, match="corrupt"):
            small_files.parse_decision(P, TxId(5), data[:cut])


def test_no_bit_of_a_decision_can_rot_unseen() -> None:
    """Notice each bit: a decision may be a lie then, and it would win the next recovery."""
    decision = Decision(segment(5, 9, finalized=True), Epoch(3))
    data = small_files.decision_bytes(decision)
    for at in range(len(data)):
        for bit in range(8):
            rotten = bytearray(data)
            rotten[at] ^= 1 << bit
            try:
                assert small_files.parse_decision(P, TxId(5), bytes(rotten)) == decision
            except StorageFailed:
                continue
            assert at > data[0], "only what marks the checksum may be taken for Hadoop's text"


@given(st.lists(st.integers(1, 400), max_size=12), st.integers(0, 50))
def test_a_download_is_checked_however_it_is_cut(cuts: list[int], padding: int) -> None:
    data = requests_of.segment_bytes(3, 9) + requests_of.records(10, 11) + b"\xff" * padding
    check, stored, position = SegmentCheck(segment(3, 9)), b"", 0
    for cut in [*cuts, len(data)]:
        stored += check.feed(data[position : position + cut])
        position += cut
    check.finish()
    assert stored == requests_of.segment_bytes(3, 9)


@given(st.data())
def test_a_download_with_any_byte_changed_is_refused(data: st.DataObject) -> None:
    whole = bytearray(requests_of.segment_bytes(3, 6))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    check = SegmentCheck(segment(3, 6))

    def receive() -> bytes:
        stored = check.feed(bytes(whole))
        check.finish()
        return stored

    if at < 4:  # another layout version is fine, as long as it is one
        try:
            assert receive()[8:] == requests_of.records(3, 6)
        except ValueError:
            return
    else:
        with pytest.raises(ValueError, match=r"."):
            receive()


def test_other_edits_of_the_same_length_are_refused() -> None:
    check = SegmentCheck(segment(3, 6))
    check.feed(requests_of.segment_bytes(3, 6, writer=2))
    with pytest.raises(ValueError, match="are not those that were decided on"):
        check.finish()


def written(root: Path, last: int = 5) -> requests_of.LocalJournal:
    journal, writer = requests_of.formatted(root), requests_of.Writer(1)
    for request in (writer.new_epoch(), writer.start(1), writer.batch(1, 1, last)):
        journal.ask(request)
    return journal


def reopened(journal: requests_of.LocalJournal, root: Path) -> requests_of.LocalJournal:
    journal.close()
    return requests_of.LocalJournal(root)


LEFTOVERS = (
    "edits.sync/edits_7-9", "current/VERSION.tmp", "current/paxos/7.tmp",
    f"current/{FIRST}.epoch=7", "current/segments/9", "current/segments/x",
)  # fmt: skip
"""What a crash leaves of things that were under way, or of segments that are gone."""


def test_a_reopened_journal_knows_what_it_promised_and_holds(tmp_path: Path) -> None:
    written(tmp_path).close()
    for left in (tmp_path / name for name in LEFTOVERS):
        left.parent.mkdir(exist_ok=True)
        left.touch()
    journal = requests_of.LocalJournal(tmp_path)
    assert not [name for name in LEFTOVERS if (tmp_path / name).exists()]
    assert journal.state.namespace == requests_of.NAMESPACE
    assert journal.state.promised == 1
    assert journal.state.open is None
    assert journal.state.segments == {1: segment(1, 5)}
    assert journal.ask(requests_of.Writer(2).new_epoch()) == Promised(TxId(1))


def test_a_bit_flip_ends_what_is_reported(tmp_path: Path) -> None:
    written(tmp_path).close()
    path = tmp_path / "current" / FIRST
    data = bytearray(path.read_bytes())
    size = len(requests_of.records(1, 1))
    data[8 + 2 * size + 20] ^= 1  # in the third edit; two sound ones follow it
    path.write_bytes(data)
    journal = requests_of.LocalJournal(tmp_path)
    assert journal.state.segments == {1: segment(1, 2)}
    writer = requests_of.Writer(2)
    journal.ask(writer.new_epoch())
    with pytest.raises(OutOfSync, match="disk only contains up to txid 2"):
        journal.ask(writer.finalize(1, 5, 1))
    journal.accept(writer, segment(1, 5), requests_of.segment_bytes(1, 5))
    journal.ask(writer.finalize(1, 5, 1))
    final = tmp_path / "current" / Segment(TxId(1), TxId(5), finalized=True).name()
    assert final.read_bytes() == requests_of.segment_bytes(1, 5)
    assert not path.exists()


def test_a_promise_leaves_a_segment_whose_digest_needs_no_reading(tmp_path: Path) -> None:
    """Keep the digest: a new writer waits for it, and 64 MB take a third of a second to read."""
    journal, path = written(tmp_path), tmp_path / "current" / FIRST
    journal.ask(requests_of.Writer(2).new_epoch())
    path.rename(tmp_path / "elsewhere")
    assert journal.disk.digest(journal.state.segments[TxId(1)]).digest == requests_of.digest(1, 5)
    (tmp_path / "elsewhere").rename(path)
    # Whatever touches segments ends that: the file is read again.
    writer = requests_of.Writer(2)
    journal.accept(writer, segment(1, 3), requests_of.segment_bytes(1, 3))
    assert journal.disk.digest(segment(1, 3)).digest == requests_of.digest(1, 3)


def test_padding_is_not_damage_and_is_cut_by_finalize(tmp_path: Path) -> None:
    written(tmp_path).close()
    path = tmp_path / "current" / FIRST
    path.write_bytes(path.read_bytes() + b"\xff" * 1000)
    assert inspect(RealFiles(), path, TxId(1)).damage is None
    journal, writer = requests_of.LocalJournal(tmp_path), requests_of.Writer(2)
    journal.ask(writer.new_epoch())
    journal.ask(writer.finalize(1, 5, 1))
    final = tmp_path / "current" / Segment(TxId(1), TxId(5), finalized=True).name()
    assert final.read_bytes() == requests_of.segment_bytes(1, 5)


ASIDE = {
    "nothing at all": (b"", "empty"),
    "a header cut short": (file_header()[:5], "empty"),
    "a header and no edit": (file_header(), "empty"),
    "preallocated, header never written": (b"\xff" * 4096, "empty"),
    "a header that is none": (b"\0" * 64, "corrupt"),
    "nothing but a header that is none": (b"\0" * 8, "corrupt"),
    "a first edit that is damaged": (
        file_header() + requests_of.records(1, 1)[:-1] + b"\0",
        "corrupt",
    ),
    "another segment's edits": (requests_of.segment_bytes(2, 3), "corrupt"),
}


@pytest.mark.parametrize(("data", "suffix"), ASIDE.values(), ids=list(ASIDE))
def test_a_segment_without_an_edit_is_moved_aside(tmp_path: Path, data: bytes, suffix: str) -> None:
    requests_of.formatted(tmp_path).close()
    current = tmp_path / "current"
    (current / FIRST).write_bytes(data)
    journal = requests_of.LocalJournal(tmp_path)
    assert not journal.state.segments
    assert not (current / FIRST).exists()
    assert (current / f"{FIRST}.{suffix}").exists()
    writer = requests_of.Writer(1)  # the node may begin the same segment
    journal.ask(writer.start(1))
    journal.ask(writer.batch(1, 1, 2))
    journal.close()


def test_a_future_layout_of_unknown_ops_is_scanned(tmp_path: Path) -> None:
    journal, writer = requests_of.formatted(tmp_path), requests_of.Writer(1)
    journal.ask(writer.new_epoch())
    journal.ask(writer.start(1, layout=-1000))
    journal.ask(writer.batch(1, 1, 5))
    journal = reopened(journal, tmp_path)
    assert journal.state.segments == {1: replace(segment(1, 5), layout_version=-1000)}


def test_a_finalized_and_an_in_progress_file_of_one_start(tmp_path: Path) -> None:
    written(tmp_path).close()
    current = tmp_path / "current"
    (current / Segment(TxId(1), TxId(3), finalized=True).name()).write_bytes(
        requests_of.segment_bytes(1, 3)
    )
    journal = requests_of.LocalJournal(tmp_path)
    found = journal.ask(GetEditLogManifest(TxId(1), in_progress_ok=True))
    assert isinstance(found, Manifest)
    assert [(held.first, held.last) for held in found.segments] == [(1, 3)]
    assert (current / f"{FIRST}.stale").exists()


def test_a_damaged_finalized_segment_is_refused_and_the_rest_is_served(tmp_path: Path) -> None:
    journal, writer = written(tmp_path), requests_of.Writer(1, 5)
    journal.ask(writer.finalize(1, 5))
    journal.ask(writer.start(6))
    journal.close()
    path = tmp_path / "current" / Segment(TxId(1), TxId(5), finalized=True).name()
    path.write_bytes(path.read_bytes()[:-10])
    journal, writer = requests_of.LocalJournal(tmp_path), requests_of.Writer(2)
    journal.ask(writer.new_epoch())
    with pytest.raises(StorageFailed, match="is damaged: it has"):
        journal.ask(PrepareRecovery(writer.stamp(), TxId(1)))
    assert isinstance(journal.ask(PrepareRecovery(writer.stamp(), TxId(6))), Prepared)


def test_trailing_garbage_behind_a_finalized_segment_means_nothing(tmp_path: Path) -> None:
    requests_of.formatted(tmp_path).close()
    path = tmp_path / "current" / Segment(TxId(1), TxId(5), finalized=True).name()
    path.write_bytes(requests_of.segment_bytes(1, 5) + b"garbage")
    journal, writer = requests_of.LocalJournal(tmp_path), requests_of.Writer(2)
    reply = journal.ask(PrepareRecovery(writer.stamp(), TxId(1)))
    assert isinstance(reply, Prepared)
    # Its writer was not recorded.
    assert reply.segment == replace(segment(1, 5, finalized=True), writer=NO_EPOCH)
    assert journal.disk.extent(segment(1, 5, finalized=True)).end == len(
        requests_of.segment_bytes(1, 5)
    )


def test_format_refuses_and_by_force_resets_everything(tmp_path: Path) -> None:
    journal = written(tmp_path)
    other = NamespaceInfo(-65, 7, "other", 0)
    asked = Format(
        other, force=True, incarnation=requests_of.LIFE, seen_promised=journal.state.promised
    )
    journal.ask(replace(asked, seen_namespace_id=requests_of.NAMESPACE.namespace_id))
    assert (journal.state.promised, journal.state.writer) == (0, 0)
    journal = reopened(journal, tmp_path)
    assert journal.state.namespace == NamespaceInfo(-65, 7, "other", 0)
    assert not journal.state.segments
    assert journal.state.promised == 0


def test_an_unformatted_folder_is_left_alone(tmp_path: Path) -> None:
    journal = requests_of.LocalJournal(tmp_path / "ns1")
    with pytest.raises(NotFormatted):
        journal.ask(requests_of.Writer(1).new_epoch())
    assert list((tmp_path / "ns1").iterdir()) == []


@pytest.mark.parametrize(
    "names", [("lastcheckpoint.tmp",), ("previous.tmp", "removed.tmp")], ids=", ".join
)
def test_folders_that_no_crash_leaves_behind_are_not_touched(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    """Two half-done states at once, or one that is not a journal's."""
    requests_of.formatted(tmp_path).close()
    for name in names:
        (tmp_path / name).mkdir()
    with pytest.raises(StorageFailed, match="Nothing was changed"):
        requests_of.LocalJournal(tmp_path)
    assert all((tmp_path / name).is_dir() for name in names)


@pytest.mark.parametrize("name", ["previous.tmp", "removed.tmp", "finalized.tmp"])
def test_a_half_done_state_beside_a_whole_journal_is_settled(tmp_path: Path, name: str) -> None:
    requests_of.formatted(tmp_path).close()
    (tmp_path / name).mkdir()
    assert requests_of.LocalJournal(tmp_path).state.namespace is not None
    assert not (tmp_path / name).exists()
