"""What a directory uses is kept right through each edit that could make it wrong."""

import pytest

from namenode_sim.edits import ops
from namenode_sim.edits.ops import Op
from namenode_sim.edits.values import Block
from tests.namenode_sim.namespace.given_edits import add, after, close, file, go_on, mkdir
from tests.namenode_sim.namespace.snapshots.use_recount import counted_wrong

policy, rename = ops.SetStoragePolicy, ops.Rename
replicate, delete = ops.SetReplication, ops.Delete
B1, B2 = Block(1, 100, 21), Block(2, 50, 22)
ARCHIVE, SSD = 2, 12

TAKEN: list[Op] = [ops.AllowSnapshot("/s"), ops.CreateSnapshot("/s", "one", 5)]
"""A snapshot of /s, which is there."""


def grown(path: str, length: int) -> ops.UpdateBlocks:
    return ops.UpdateBlocks(path, (Block(1, length, 21),))


WRITTEN: list[Op] = [
    mkdir("/s"),
    mkdir("/t"),
    *file("/s/f", B1),
    mkdir("/s/d"),
    *file("/s/d/g", B2),
]
OPEN: list[Op] = [
    mkdir("/s"),
    mkdir("/t"),
    add("/s/f"),
    ops.AddBlock("/s/f", None, Block(1, 0, 21)),
]
MOVED_DIRECTORY: list[Op] = [*WRITTEN, *TAKEN, rename("/s/d", "/t/d", 6)]

PROGRAMS: dict[str, tuple[list[Op], list[Op]]] = {
    "a moved open file grows": (
        [*OPEN, *TAKEN, rename("/s/f", "/t/f", 6)], [grown("/t/f", 23), grown("/t/f", 40)],
    ),
    "a file below a moved directory grows": (
        [mkdir("/s"), mkdir("/t"), mkdir("/s/d"), add("/s/d/f"),
         ops.AddBlock("/s/d/f", None, Block(1, 0, 21)), *TAKEN, rename("/s/d", "/t/d", 6)],
        [grown("/t/d/f", 23)],
    ),
    "an open file grows where nothing has moved": ([*OPEN, *TAKEN], [grown("/s/f", 23)]),
    "what is below a moved directory goes": (MOVED_DIRECTORY, [delete("/t/d/g", 7)]),
    "something comes below a moved directory, and goes": (
        MOVED_DIRECTORY, [mkdir("/t/d/x"), delete("/t/d/x", 8)],
    ),
    "a directory that a snapshot has goes with its files": (
        [*WRITTEN, *TAKEN], [delete("/s/d", 7)],
    ),
    "an empty directory that a snapshot has goes": (
        [*WRITTEN, mkdir("/s/e"), *TAKEN], [delete("/s/e", 7)],
    ),
    "a directory whose files only a snapshot has goes": (
        [*WRITTEN, *TAKEN, delete("/s/d/g", 6)], [delete("/s/d", 7)],
    ),
    "a file that a snapshot has goes": ([*WRITTEN, *TAKEN], [delete("/s/f", 7)]),
    "a file that a snapshot has is cut, and goes": (
        [*WRITTEN, *TAKEN], [ops.Truncate("/s/f", "w", "m", 60, 6, Block(1, 100, 31)),
                             delete("/s/f", 7)],
    ),
    "an open file that a snapshot has goes": (
        [*OPEN, grown("/s/f", 9), *TAKEN], [delete("/s/f", 7)],
    ),
    "an open file without a byte goes": ([*OPEN, *TAKEN], [delete("/s/f", 7)]),
    "a snapshot goes": (
        [*WRITTEN, *TAKEN, delete("/s/f", 7)], [ops.DeleteSnapshot("/s", "one", 8)],
    ),
    "replicas come and go": (WRITTEN, [replicate("/s/f", 5), replicate("/s/f", 1)]),
    "replicas go while a snapshot wants more": (
        [*WRITTEN, *TAKEN], [replicate("/s/f", 1), replicate("/s/f", 7)],
    ),
    "a file is opened and closed": (
        WRITTEN, [ops.Append("/s/f", "w", "m", new_block=False), close("/s/f", B1)],
    ),
    "a file is opened for a new block": (
        WRITTEN, [ops.Append("/s/f", "w", "m", new_block=True),
                  ops.AddBlock("/s/f", B1, Block(3, 0, 23)), close("/s/f", B1, Block(3, 7, 23))],
    ),
    "a file is created in the place of another": (WRITTEN, [add("/s/f", overwrite=True)]),
    "files are put behind another": (
        [*WRITTEN, *file("/s/h", Block(4, 30, 24))], [ops.ConcatDelete("/s/f", ("/s/h",), 7)],
    ),
    "a directory moves to another policy": (
        [*WRITTEN, policy("/s", ARCHIVE), policy("/t", SSD)],
        [rename("/s/d", "/t/d", 7), rename("/t/d", "/s/d", 8)],
    ),
    "a directory moves, twice, between the same policies": (
        [*WRITTEN, mkdir("/u"), policy("/s", ARCHIVE), policy("/t", SSD)],
        [rename("/s/d", "/u/d", 7), policy("/u", SSD), rename("/u/d", "/t/d", 8)],
    ),
    "a directory's policy changes": (
        WRITTEN, [policy("/s", SSD), policy("/s", 0)],
    ),
    "a file's policy changes": (WRITTEN, [policy("/s/f", SSD)]),
    "a directory goes and another comes by its name": (
        WRITTEN, [delete("/s/d", 7), mkdir("/s/d"), *file("/s/d/x", Block(5, 9, 25))],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "then"), PROGRAMS.values(), ids=PROGRAMS.keys())
def test_the_use_is_that_of_a_recount_after_each_edit(given: list[Op], then: list[Op]) -> None:
    namespace = after(*given)
    assert counted_wrong(namespace) == {}
    for op in then:
        go_on(namespace, [op])
        assert counted_wrong(namespace) == {}, op


def test_what_is_kept_of_a_directory_goes_with_it() -> None:
    namespace = after(*WRITTEN, *TAKEN)
    assert counted_wrong(namespace) == {}
    usage, number = namespace.tree.usage, namespace.tree.node("/s/d").id
    assert number in usage.live
    assert number in usage.held
    go_on(namespace, [ops.DeleteSnapshot("/s", "one", 6), ops.DisallowSnapshot("/s")])
    assert counted_wrong(namespace) == {}
    go_on(namespace, [delete("/s/d", 7)])
    assert number not in usage.live
    assert number not in usage.held


def test_without_snapshots_a_simple_edit_costs_no_walk() -> None:
    """What is kept of other directories stays, and is not counted anew."""
    namespace = after(*WRITTEN)
    assert counted_wrong(namespace) == {}
    kept = dict(namespace.tree.usage.live)
    go_on(namespace, [mkdir("/s/d/e"), replicate("/s/f", 2), rename("/s/f", "/t/f", 8)])
    assert {number: namespace.tree.usage.live[number] for number in kept} == kept
    assert all(namespace.tree.usage.live[number] is use for number, use in kept.items())


def test_with_snapshots_a_file_that_goes_costs_no_walk() -> None:
    namespace = after(*WRITTEN, *TAKEN)
    assert counted_wrong(namespace) == {}
    kept = dict(namespace.tree.usage.held)
    go_on(namespace, [delete("/s/f", 7), mkdir("/s/new"), delete("/s/new", 8)])
    assert all(namespace.tree.usage.held[number] is use for number, use in kept.items())
    assert counted_wrong(namespace) == {}
