"""A file keeps its numbers packed and its traits shared; its users must not notice."""

import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from namenode_sim.edits import values
from namenode_sim.namespace import inode
from namenode_sim.namespace.file_numbers import pack_blocks, pack_numbers

LONG = st.integers(-(2**63), 2**63 - 1) | st.sampled_from((-(2**63), -1, 0, 2**63 - 1))
BLOCKS = st.lists(st.builds(values.Block, LONG, LONG, LONG), max_size=4).map(tuple)
ACL = (values.AclEntry(values.AclScope.ACCESS, values.AclType.USER, "bob", 7),)
XATTRS = (values.XAttr(values.XAttrNamespace.USER, "colour", b"red"),)
SOMEBODY = inode.INodeFile(b"moved", pack_numbers(1, 0, 0), inode.FileTraits("u", "g", 0, 1, 1))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "name": st.binary(min_size=1, max_size=20),
    "mtime": LONG,
    "atime": LONG,
    "blocks": BLOCKS,
    "packed_blocks": BLOCKS.map(pack_blocks),
    "user": st.sampled_from(("alice", "bob", "")),
    "group": st.sampled_from(("staff", "")),
    "mode": st.integers(0, 0xFFFF),
    "replication": st.integers(0, 512),
    "preferred_block_size": st.integers(1, 2**63 - 1),
    "storage_policy_id": st.integers(0, 127),
    "block_type": st.integers(0, 1),
    "ec_policy_id": st.integers(0, 255),
    "under_construction": st.none() | st.just(inode.UnderConstruction("client", "here")),
    "acl": st.none() | st.just(ACL),
    "xattrs": st.none() | st.just(XATTRS),
    "history": st.none() | st.builds(inode.FileHistory),
    "reference": st.none() | st.builds(inode.Reference, st.just(SOMEBODY)),
}
CHANGES = st.sampled_from(sorted(VALUES)).flatmap(
    lambda name: st.tuples(st.integers(0, 3), st.just(name), VALUES[name])
)
RARE = ("under_construction", "acl", "xattrs", "history", "reference")
Model = dict[str, Any]


def plain(name: bytes, numbers: tuple[int, int, int], blocks: tuple[values.Block, ...]) -> Model:
    number, mtime, atime = numbers
    traits = inode.FileTraits("alice", "staff", 0o644, 3, 2**27)._asdict()
    return {
        **traits, "id": number, "name": name, "mtime": mtime, "atime": atime, "blocks": blocks,
        "packed_blocks": pack_blocks(blocks), "parent": None,
    }  # fmt: skip


def change(model: Model, name: str, value: object) -> None:
    """Set an attribute; the two names of the blocks go together."""
    model[name] = value
    if name == "blocks":
        model["packed_blocks"] = pack_blocks(model["blocks"])
    elif name == "packed_blocks":
        found = struct.iter_unpack(">qqq", model["packed_blocks"])
        model["blocks"] = tuple(values.Block(*block) for block in found)


def seen(file: inode.INodeFile) -> Model:
    return {name: getattr(file, name) for name in (*VALUES, "id", "parent")}


@given(
    st.lists(st.tuples(st.tuples(LONG, LONG, LONG), BLOCKS), min_size=4, max_size=4),
    st.lists(CHANGES, max_size=20),
)
def test_files_are_what_plain_records_would_be(
    made: list[tuple[tuple[int, int, int], tuple[values.Block, ...]]],
    changes: list[tuple[int, str, object]],
) -> None:
    traits = inode.FileTraits("alice", "staff", 0o644, 3, 2**27)
    files = [
        inode.INodeFile(b"f", pack_numbers(*n, pack_blocks(b)), inode.shared(traits))
        for n, b in made
    ]
    models = [plain(b"f", n, b) for n, b in made]
    for which, name, value in changes:
        setattr(files[which], name, value)
        change(models[which], name, value)
    assert [seen(file) for file in files] == models
    for file, model in zip(files, models, strict=True):
        assert file.length() == sum(block.num_bytes for block in model["blocks"])
        copy = file.kept_copy(b"then", b"")
        gone = {"under_construction": None, "history": None, "reference": None}
        kept = {**model, **gone, "name": b"then", "blocks": (), "packed_blocks": b""}
        assert (seen(copy), seen(file)) == (kept, model)


@given(st.lists(CHANGES, max_size=20))
def test_files_that_agree_in_all_that_is_not_rare_share_one_record(
    changes: list[tuple[int, str, object]],
) -> None:
    traits = inode.FileTraits("alice", "staff", 0o644, 3, 2**27)
    files = [inode.INodeFile(b"f", pack_numbers(n, 0, 0), inode.shared(traits)) for n in range(4)]
    for which, name, value in changes:
        setattr(files[which], name, value)
    usual = [file.traits for file in files if not any(getattr(file, name) for name in RARE)]
    assert len({id(traits) for traits in usual}) == len(set(usual))
    own = [file.traits for file in files if any(getattr(file, name) for name in RARE)]
    assert len({id(traits) for traits in own}) == len(own)


@pytest.mark.parametrize("name", ["mtime", "atime"])
def test_a_number_that_is_no_java_long_is_refused_and_changes_nothing(name: str) -> None:
    file = inode.INodeFile(
        b"f", pack_numbers(7, 8, 9), inode.FileTraits("alice", "staff", 0o644, 3, 2**27)
    )
    before = seen(file)
    for number in (2**63, -(2**63) - 1):
        with pytest.raises(struct.error):
            setattr(file, name, number)
    assert seen(file) == before


TIMES: dict[str, tuple[Callable[[inode.INodeFile], None], tuple[int, int]]] = {
    "of modification": (lambda file: setattr(file, "mtime", 2**40), (2**40, 9)),
    "of access": (lambda file: setattr(file, "atime", 2**40), (8, 2**40)),
    "both": (lambda file: file.set_times(2**40, -1), (2**40, -1)),
}


@pytest.mark.parametrize(("change", "times"), TIMES.values(), ids=TIMES.keys())
def test_a_time_that_is_set(
    change: Callable[[inode.INodeFile], None], times: tuple[int, int]
) -> None:
    block = values.Block(1, 100, 11)
    numbers = pack_numbers(7, 8, 9, pack_blocks((block,)))
    file = inode.INodeFile(b"f", numbers, inode.FileTraits("alice", "staff", 0o644, 3, 2**27))
    change(file)
    assert (file.id, (file.mtime, file.atime), file.blocks) == (7, times, (block,))


RARE_VALUES: dict[str, Any] = {
    "under_construction": inode.UnderConstruction("client", "here"),
    "acl": ACL,
    "xattrs": XATTRS,
    "history": inode.FileHistory(),
    "reference": inode.Reference(SOMEBODY),
}


@pytest.mark.parametrize("name", RARE)
def test_a_record_with_something_rare_stays_its_file_s_own(name: str) -> None:
    rare = {name: RARE_VALUES[name]}
    first, again = (inode.FileTraits("alice", "staff", 0o644, 3, 2**27, **rare) for _ in range(2))
    assert inode.shared(first) is first
    assert inode.shared(again) is again


def test_a_full_table_of_shared_records_begins_anew() -> None:
    inode._shared.clear()
    first = inode.shared(inode.FileTraits("alice", "staff", 0o644, 3, 2**40))
    again = inode.FileTraits("alice", "staff", 0o644, 3, 2**40)
    for size in range(inode.SHARED_AT_MOST - 2):
        assert (
            inode.shared(inode.FileTraits("alice", "staff", 0o644, 3, size)).preferred_block_size
            == size
        )
    assert inode.shared(again) is first, "there is room for so many"
    inode.shared(inode.FileTraits("alice", "staff", 0o644, 3, 2**41))
    assert inode.shared(again) is again, "the table would grow for ever"
