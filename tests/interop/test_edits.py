"""Edit logs of ours and of Hadoop's: each reads the other's, and writes the same bytes."""

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st

from journal.frame import HEADER_BYTES, file_header, read_header
from journal.model import LAYOUT_VERSION, TxId
from namenode_sim.edits import ops, values
from namenode_sim.edits.codec import NEWEST_LAYOUT, decode_all, encode
from namenode_sim.edits.errors import EditsError
from tests.interop.hadoop_server import Hadoop
from tests.interop.name_dirs import segments
from tests.interop.our_viewers import our_oev
from tests.worlds.any_op import instances

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

READ_ONLY = {ops.SetNsQuota, ops.ClearNsQuota}
"""Hadoop reads these and has no code to write them."""

FEW = settings(
    max_examples=8,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=[HealthCheck.too_slow],
)

LAYOUTS = (LAYOUT_VERSION, NEWEST_LAYOUT)

TIMED = {ops.CreateSnapshot, ops.DeleteSnapshot, ops.RenameSnapshot}
"""Without a time in old logs: Hadoop 3.5.0 then leaves that of an earlier edit in the object."""

WRITTEN = [cls for cls in ops.OP_CLASSES if cls not in READ_ONLY]


def log_of(edits: Iterable[ops.Op], layout: int) -> bytes:
    """Return a segment of ours; give the example up where an edit does not fit into the layout."""
    try:
        frames = [encode(op, TxId(txid), layout) for txid, op in enumerate(edits, start=1)]
    except EditsError:
        reject()
    return file_header(layout) + b"".join(frames)


def test_a_log_of_hadoop_is_written_back_byte_for_byte(worked_in: Path) -> None:
    for segment in segments(worked_in):
        data = segment.read_bytes()
        layout = read_header(data)
        edits = decode_all(data, layout, start=HEADER_BYTES)
        again = b"".join(encode(op, txid, layout) for txid, op in edits)
        assert data == data[:HEADER_BYTES] + again


@pytest.mark.parametrize("op_class", WRITTEN, ids=lambda cls: cls.__name__)
def test_hadoop_reads_any_edit_of_ours_and_writes_the_same_bytes(
    hadoop: Hadoop, tmp_path: Path, op_class: type[ops.Op]
) -> None:
    source, target = tmp_path / "ours", tmp_path / "theirs"

    @FEW
    @given(some(op_class), layouts(op_class))
    def rewritten(edits: list[ops.Op], layout: int) -> None:
        source.write_bytes(log_of(edits, layout))
        hadoop.rewrite_edits(source, target)
        # Whatever it reads, it writes its own layout.
        assert_same_log(target, log_of(edits, NEWEST_LAYOUT))

    rewritten()


@pytest.mark.parametrize("op_class", ops.OP_CLASSES, ids=lambda cls: cls.__name__)
def test_its_viewer_prints_any_edit_as_ours_does(
    hadoop: Hadoop, tmp_path: Path, op_class: type[ops.Op]
) -> None:
    source = tmp_path / "edits"
    ours, theirs = tmp_path / "ours.xml", tmp_path / "theirs.xml"

    @FEW
    @given(some(op_class), layouts(op_class))
    def printed(edits: list[ops.Op], layout: int) -> None:
        source.write_bytes(log_of(edits, layout))
        hadoop.print_edits(source, theirs)
        our_oev(source, ours, "xml")
        assert ours.read_bytes().decode() == theirs.read_bytes().decode()

    printed()


@pytest.mark.parametrize("op_class", WRITTEN, ids=lambda cls: cls.__name__)
def test_both_viewers_make_the_same_log_of_xml(
    hadoop: Hadoop, tmp_path: Path, op_class: type[ops.Op]
) -> None:
    source, printed = tmp_path / "edits", tmp_path / "edits.xml"
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"

    @FEW
    @given(some(op_class))
    def made(edits: list[ops.Op]) -> None:
        source.write_bytes(log_of(map(readable_as_xml, edits), NEWEST_LAYOUT))
        hadoop.print_edits(source, printed)
        hadoop.print_edits(printed, theirs, "binary")
        our_oev(printed, ours, "binary")
        assert_same_log(theirs, ours.read_bytes())

    made()


def test_its_viewer_prints_its_own_logs_as_ours_does(
    hadoop: Hadoop, worked_in: Path, tmp_path: Path
) -> None:
    ours, theirs = tmp_path / "ours.xml", tmp_path / "theirs.xml"
    for segment in segments(worked_in):
        hadoop.print_edits(segment, theirs)
        our_oev(segment, ours, "xml")
        assert ours.read_bytes() == theirs.read_bytes()


def some(op_class: type[ops.Op]) -> st.SearchStrategy[list[ops.Op]]:
    return st.lists(instances(op_class).map(possible), min_size=1, max_size=8)


def layouts(op_class: type[ops.Op]) -> st.SearchStrategy[int]:
    """Return the layouts at which Hadoop reads such edits as they are."""
    return st.sampled_from((NEWEST_LAYOUT,) if op_class in TIMED else LAYOUTS)


def assert_same_log(path: Path, expected: bytes) -> None:
    """Check that the file holds these edits, and perhaps what was preallocated behind them."""
    data = path.read_bytes()
    path.unlink()  # Hadoop writes over what is there, without making it shorter
    assert data[: len(expected)] == expected
    assert not data[len(expected) :].strip(b"\xff")


def readable_as_xml(op: ops.Op) -> ops.Op:
    """Return the edit without what Hadoop's own XML reader fails on."""
    match op:
        case ops.Add():
            # Not in the XML; its reader then leaves those of an earlier edit in the object.
            return replace(op, xattrs=(), storage_policy_id=0)
        case ops.Rename(options=()):
            return replace(op, options=(values.RenameOption.NONE,))
        case ops.Truncate():
            return replace(op, block=None)  # it looks for the block's fields one level too high
        case ops.GetDelegationToken() | ops.RenewDelegationToken() | ops.CancelDelegationToken():
            # A name with a slash is a Kerberos principal, for which it lacks rules.
            return replace(op, token=replace(op.token, owner="o", renewer="r", real_user=""))
        case _:
            return op


def possible(given: Any) -> Any:  # noqa: ANN401 - an op or anything in it
    """Return the edit with such values only as Hadoop's classes can hold."""
    if isinstance(given, tuple):
        return tuple(map(possible, given))
    if not is_dataclass(given) or isinstance(given, type):
        return given
    parts = {field.name: possible(getattr(given, field.name)) for field in fields(given)}
    if "mode" in parts and parts["mode"] is not None:
        parts["mode"] &= 0o1777
    whole = replace(given, **parts)
    repair: Callable[[Any], Any] | None = _REPAIRS.get(type(given))
    return whole if repair is None else repair(whole)


_REPAIRS: dict[type, Callable[[Any], Any]] = {
    values.Block: lambda block: replace(block, num_bytes=abs(block.num_bytes) % 2**63),
    values.RpcIds: lambda rpc: replace(
        rpc, client_id=rpc.client_id and rpc.client_id.ljust(16)[:16]
    ),
    values.AclEntry: lambda entry: replace(entry, name=entry.name or None),
    # Its second time is read and dropped, and written as the first again.
    ops.Mkdir: lambda op: replace(op, atime=op.time),
    values.CacheDirective: lambda d: replace(
        d, path=None if d.path is None else "/" + d.path.strip("/.")
    ),
    values.EcPolicy: lambda policy: replace(
        policy,
        codec=policy.codec or "rs",
        data_units=abs(policy.data_units) % 100 + 1,
        parity_units=abs(policy.parity_units) % 100 + 1,
        cell_size=(abs(policy.cell_size) % 2**20 + 1) * 1024,
        options=policy.options[:1],
    ),
}
