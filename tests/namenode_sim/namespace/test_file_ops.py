"""What edits say of a file: its writer, from where, when, for whom and how often it is held."""

from dataclasses import replace

import pytest

from namenode_sim.edits import ops
from namenode_sim.edits.ops import Op
from namenode_sim.edits.values import Permission
from namenode_sim.namespace.inode import UnderConstruction
from tests.namenode_sim.namespace.dump import dump_tree
from tests.namenode_sim.namespace.given_edits import (
    B1,
    WHO,
    add,
    after,
    close,
    file,
    mkdir,
    reopened,
)

FIRST, SECOND = UnderConstruction("writer", "here"), UnderConstruction("other", "there")
BY_SECOND = replace(reopened("/f"), client_name="other", client_machine="there")
"""An old log's edit of another writer."""

WRITERS: dict[str, tuple[list[Op], UnderConstruction | None]] = {
    "created": ([add("/f")], FIRST),
    "closed": (file("/f"), None),
    "reopened": ([*file("/f"), ops.Append("/f", "other", "there")], SECOND),
    "reopened by an old log": ([*file("/f"), BY_SECOND], SECOND),
    "still open, as an old log tells its blocks": ([add("/f"), BY_SECOND], FIRST),
    "cut inside a block": ([*file("/f", B1), ops.Truncate("/f", "other", "there", 50, 5)], SECOND),
    "cut behind its end": ([*file("/f", B1), ops.Truncate("/f", "other", "there", 150, 5)], SECOND),
    "handed over": (
        [add("/f"), ops.ReassignLease("writer", "/f", "other")],
        UnderConstruction("other", "here"),
    ),
}


@pytest.mark.parametrize(("given", "expected"), WRITERS.values(), ids=WRITERS.keys())
def test_who_writes_a_file_and_from_where(
    given: list[Op], expected: UnderConstruction | None
) -> None:
    tree = after(given).tree
    made = tree.file("/f")
    assert made.under_construction == expected
    assert tree.leases == ({expected.client_name: {made.id}} if expected is not None else {})


TIMES: dict[str, tuple[list[Op], tuple[int, int]]] = {
    "created": ([replace(add("/f"), mtime=10, atime=7)], (10, 7)),
    "closed": ([add("/f"), replace(close("/f"), mtime=20, atime=8)], (20, 8)),
    "reopened": ([*file("/f"), ops.Append("/f", "other", "there")], (20, 20)),
    "reopened by an old log": ([*file("/f"), replace(reopened("/f"), mtime=30, atime=9)], (30, 9)),
    "still open": ([add("/f"), replace(add("/f"), mtime=30, atime=9)], (30, 9)),
    "cut": ([*file("/f", B1), ops.Truncate("/f", "w", "m", 50, 40)], (40, 20)),
}


@pytest.mark.parametrize(("given", "expected"), TIMES.values(), ids=TIMES.keys())
def test_when_a_file_was_written_and_read(given: list[Op], expected: tuple[int, int]) -> None:
    made = after(given).tree.file("/f")
    assert (made.mtime, made.atime) == expected


@pytest.mark.parametrize(("named", "expected"), [("readers", "readers"), ("", "staff")])
def test_a_file_without_a_group_takes_that_of_its_directory(named: str, expected: str) -> None:
    who = Permission("bob", named, 0o640)
    made = after(mkdir("/d"), replace(add("/d/f"), permission=who)).tree.file("/d/f")
    assert (made.user, made.group, made.mode) == ("bob", expected, 0o640)


@pytest.mark.parametrize(("asked", "held"), [(0, 1), (1, 1), (3, 3), (512, 512), (513, 512)])
def test_a_file_is_held_at_least_once_and_not_too_often(asked: int, held: int) -> None:
    made = after(
        replace(add("/made"), replication=asked), add("/set"), ops.SetReplication("/set", asked)
    ).tree
    assert [made.file(path).replication for path in ("/made", "/set")] == [held, held]


NO_FILES: dict[str, list[Op]] = {
    "nothing": [],
    "a directory": [mkdir("/x")],
    "a symlink": [ops.Symlink(0, "/x", "/t", 5, 5, WHO)],
}


@pytest.mark.parametrize("given", NO_FILES.values(), ids=NO_FILES.keys())
def test_only_files_are_replicated(given: list[Op]) -> None:
    replicated = after(given, ops.SetReplication("/x", 2))
    assert list(dump_tree(replicated.tree.root)) == list(dump_tree(after(given).tree.root))
