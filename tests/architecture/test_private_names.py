"""Tests reach into the product's private names only where there is a reason, and each is counted.

A test that knows how something is done breaks when it is done better.  What a reason allows is a
number of accesses in one file: one more must be argued for, one fewer is taken off the table.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests import PACKAGES, ROOT

REPLACING: Final = frozenset({"setattr", "object", "replacing"})
"""Calls that take a name as a text, to put something else in its place."""

_PLANTED = "a planted bug takes the place of a rule inside the product"
_BROKEN = "a connection, a session or a process is broken from outside, where no peer could do it"
_HIDDEN = "what is looked for there shows nowhere else, or too late to wait for"
_STOPPED = "the test stands still at one step in the middle of others"
_DAMAGED = "nothing but a fault of the machine writes there"
_SEAMS = "the simulation gives way to the product at its clock, its files and its calls"

ALLOWED: Final[dict[str, dict[str, int]]] = {
    _PLANTED: {
        "campaigns/bench/slow_flush.py": 3,
        "campaigns/soak/checkpoint_mutants.py": 12,
        "campaigns/soak/faults/planted.py": 2,
        "ha/elector/test_invariants.py": 5,
        "ha/zkfc/test_invariants.py": 1,
        "namenode_sim/blocks/planted.py": 16,
        "namenode_sim/client_protocol/lease_planted.py": 1,
        "namenode_sim/client_protocol/test_random_writers.py": 1,
        "namenode_sim/datanode_protocol/test_planted.py": 2,
        "namenode_sim/datanodes/redundancy_planted.py": 10,
        "namenode_sim/namespace/test_changes.py": 4,
        "simulation/blocks/planted_datanode.py": 5,
        "simulation/blocks/planted_hosts.py": 8,
        "simulation/blocks/planted_moves.py": 1,
        "simulation/blocks/planted_namenode.py": 6,
        "simulation/failover/planted_beliefs.py": 10,
        "simulation/failover/planted_control.py": 12,
        "simulation/failover/planted_elector.py": 25,
        "simulation/failover/planted_witness.py": 8,
        "simulation/journal/planted_lanes.py": 3,
        "simulation/journal/planted_limits.py": 1,
        "simulation/journal/planted_protocol.py": 12,
        "simulation/journal/planted_reads.py": 7,
        "simulation/journal/planted_rules.py": 15,
        "simulation/journal/planted_storage.py": 12,
        "simulation/journal/planted_voters.py": 1,
        "spark/merge/test_replay_planted.py": 5,
        "spark/tables/test_export.py": 2,
    },
    _BROKEN: {
        "campaigns/soak/lane.py": 1,
        "ha/daemon/test_readers.py": 2,
        "ha/elector/people.py": 3,
        "ha/elector/test_ensemble.py": 2,
        "ha/elector/test_rows_8_4.py": 8,
        "ha/elector/test_sasl.py": 2,
        "ha/elector/test_traps.py": 12,
        "ha/elector/test_zookeeper.py": 4,
        "ha/rpc/test_server.py": 1,
        "ha/zkfc/stress.py": 5,
        "ha/zkfc/test_handover.py": 3,
        "ha/zkfc/test_notices.py": 3,
        "ha/zkfc/test_orders.py": 1,
        "ha/zkfc/toy_namenode.py": 2,
        "ha/zkfc/zkfc_world.py": 6,
        "journal/node/test_rows_extra.py": 2,
        "journal/writer/test_lane.py": 1,
        "simulation/failover/test_zookeeper.py": 1,
        "spark/merge/killed_merge.py": 1,
        "spark/merge/test_on_spark.py": 1,
        "spark/merge/test_spark_dies.py": 1,
    },
    _HIDDEN: {
        "conftest.py": 2,
        "ha/notices/test_board.py": 3,
        "ha/rpc/test_room.py": 5,
        "ha/rpc/test_stop.py": 1,
        "ha/zkfc/test_access.py": 2,
        "ha/zkfc/test_history.py": 6,
        "ha/zkfc/test_stop.py": 1,
        "ha/zkfc/test_supervised.py": 1,
        "ha/zkfc/test_thread_dump.py": 1,
        "ha/zkfc/test_weaknesses.py": 2,
        "ha/zkfc/test_zookeeper_away.py": 1,
        "journal/core/test_rejoin.py": 1,
        "journal/writer/test_rejoin.py": 1,
        "namenode_sim/namespace/test_inode_file.py": 1,
        "namenode_sim/namespace/test_inode_map.py": 1,
        "simulation/journal/scripted.py": 6,
        "simulation/journal/test_lanes.py": 1,
    },
    _STOPPED: {"namenode_sim/checkpoint/test_standby_checkpointer.py": 2},
    _DAMAGED: {"journal/node/test_lane.py": 1, "journal/reader/test_tailing.py": 5},
    _SEAMS: {
        "simulation/engine/clock.py": 3,
        "simulation/journal/hadoop_like.py": 2,
        "simulation/journal/machine.py": 5,
        "simulation/journal/world.py": 1,
        "simulation/whole/world.py": 1,
    },
}
"""Why, and how often in which file."""


PRIVATE: Final = re.compile(
    r"(?<!self)(?<!cls)\._[A-Za-z]|import .*\b_[A-Za-z]|^\s+_[A-Za-z]|[\"']_[A-Za-z]", re.MULTILINE
)
"""What an access looks like, and much else."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def defined(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found = name
            case ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                found = name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                found = name
            case _:
                continue
        if is_private(found):
            yield found


def accesses(tree: ast.AST, of_product: Iterable[str]) -> Iterator[str]:
    """Yield where a test file takes a private name that is the product's and not its own."""
    foreign = frozenset(of_product) - frozenset(defined(tree))
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                continue
            case ast.Attribute(attr=name) if name in foreign:
                yield f"{node.lineno}: {ast.unparse(node)}"
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in PACKAGES:
                taken = (alias.name for alias in node.names if is_private(alias.name))
                yield from (f"{node.lineno}: {module}.{name}" for name in taken)
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in REPLACING:
                texts = (arg.value for arg in node.args if isinstance(arg, ast.Constant))
                yield from (f"{node.lineno}: {text!r}" for text in texts if text in foreign)


@cache
def private_names() -> frozenset[str]:
    files = (path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
    return frozenset(
        name for path in files if "_pb2" not in path.name for name in defined(_read(path))
    )


def _read(path: Path) -> ast.AST:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_each_access_has_a_reason() -> None:
    allowed = {name: count for files in ALLOWED.values() for name, count in files.items()}
    wrong = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        name = path.relative_to(ROOT / "tests").as_posix()
        # To walk through all of them takes 6 s; most have no private name of anything but self.
        has_any = PRIVATE.search(path.read_text(encoding="utf-8"))
        found = list(accesses(_read(path), private_names())) if has_any else []
        if len(found) != allowed.pop(name, 0):
            wrong.append(f"{name}: {len(found)}\n  " + "\n  ".join(found))
    wrong += [f"{name}: is not there" for name in allowed]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("writer._window.next", 1),
        ("a._window\nb._window", 2),
        ("from journal.core.x import _y", 1),
        ("monkeypatch.setattr(core, '_window', None)", 1),
        ("replacing(core, '_window', None)", 1),
        ("self._window", 0),
        ("here = '_window'", 0),
        ("from tests.journal.x import _y", 0),
        ("def _window(): ...\nmodule._window", 0),
        ("x._not_of_the_product", 0),
    ],
)
def test_an_access_is_seen(source: str, count: int) -> None:
    assert len(list(accesses(ast.parse(source), {"_window"}))) == count
