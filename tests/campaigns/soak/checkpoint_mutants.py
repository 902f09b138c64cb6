"""`./run soak checkpoint --mutants`: bugs planted into the merge, and the seed that shows each.

They prove the worlds and the comparison: a bug that survives its seeds shows a blind spot.  The
single process that the merge is compared with has none of them.
"""

import json
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import click
import numpy as np

from ha.daemon.logs import configure_logging
from journal.model import TxId
from namenode_sim.edits.attributes import delimited
from namenode_sim.edits.ops import Op, Rename, RenameOld
from namenode_sim.image.proto import fsimage_pb2 as pb
from namenode_sim.image.writer import open_files
from namenode_sim.namespace.inode import INode, INodeFile
from namenode_sim.namespace.namespace import Namespace
from spark.engine.outcome import InlineEngine
from spark.image.ids import IdSet
from spark.image.varints import Numbers
from spark.merge import delta, job
from spark.merge.plan import planner
from spark.merge.replay import replay
from spark.merge.sparse import Sparse
from spark.merge.write import entries, expand, stages
from spark.merge.write.expand import Expanded
from tests.campaigns.soak.checkpoint_judge import judge
from tests.campaigns.workers import workers
from tests.simulation.engine.mutants import Planting, all_of, replacing
from tests.worlds.checkpoint import make_world


@dataclass(frozen=True, slots=True)
class Mutant:
    """A bug, the first seed that is known to show it, and how many may pass without."""

    name: str
    plant: Planting
    seed: int
    seeds: int = 40


@dataclass(frozen=True, slots=True)
class Hunted:
    """What became of a bug: the seed that showed it, if any, and by what."""

    name: str
    worlds: int
    seed: int | None
    why: str


def _ignored(_planner: object, _op: object) -> None:
    """Ignore an edit, so that the planner does not look at it."""


_moves = delta._moves
_changed_entry = entries.changed_entry
_header = stages._Writing._header


def _nobody_leaves(
    sparse: Sparse,
) -> tuple[dict[int, list[int]], dict[int, list[tuple[bytes, int]]]]:
    return {}, _moves(sparse)[1]


def _only_the_looked_up(writing: stages._Writing) -> Expanded:
    gone = writing._delta.gone
    return Expanded(writing._save("deleted", gone), gone.size)


def _source_keeps_its_time(sparse: Sparse, edits: Iterable[tuple[TxId, Op]]) -> None:
    """Keep the time of the directory that something was moved out of."""

    def watched() -> Iterator[tuple[TxId, Op]]:
        for txid, op in edits:
            above = None
            if isinstance(op, Rename | RenameOld) and txid > sparse.namespace.last_applied:
                above, _ = sparse.namespace.tree.parent_of(op.src)
            before = 0 if above is None else above.mtime
            yield txid, op
            if above is not None:
                above.mtime = before

    replay(sparse, watched())


def _empty_entry(
    message: pb.DirEntry,
    removed: Numbers,
    added: Sequence[tuple[bytes, int]],
    names: Mapping[int, bytes],
) -> bytes:
    parent = message.parent
    made = _changed_entry(message, removed, added, names)
    return made or delimited(pb.DirEntry(parent=parent).SerializeToString())


def _one_is_forgotten(namespace: Namespace) -> list[INodeFile]:
    return open_files(namespace)[1:]


def _as_it_came(children: Mapping[bytes, INode]) -> Iterable[INode]:
    return children.values()


def _old_count(writing: stages._Writing, inodes: int) -> bytes:
    return _header(writing, writing._count())


def _by_bytes(name: bytes) -> bytes:
    return name


def _nothing_decided(_ids: Numbers) -> IdSet:
    return IdSet(np.empty(0, np.int64))


_PLANNER = planner._Planner

MUTANTS: Final = (
    Mutant("expands into what was moved away", replacing(expand, "IdSet", _nothing_decided), 3),
    Mutant("sorts names by unsigned bytes", replacing(entries, "signed_order", _by_bytes), 1),
    Mutant("planner ignores renames",
           all_of(replacing(_PLANNER, "_rename", _ignored),
                  replacing(_PLANNER, "_rename_old", _ignored)), 3),
    Mutant("does not expand deletions",
           replacing(stages._Writing, "_expand", _only_the_looked_up), 3),
    Mutant("no mtime where something was moved from",
           replacing(job, "replay", _source_keeps_its_time), 3),
    Mutant("keeps children that left", replacing(delta, "_moves", _nobody_leaves), 1),
    Mutant("leaves an empty entry", replacing(entries, "changed_entry", _empty_entry), 12),
    Mutant("forgets an open file", replacing(delta, "open_files", _one_is_forgotten), 1),
    Mutant("new directories' children in the order they came",
           replacing(delta, "in_order", _as_it_came), 1),
    Mutant("announces as many inodes as before",
           replacing(stages._Writing, "_header", _old_count), 1),
)  # fmt: skip


def hunt(mutant: Mutant, first: int | None = None) -> Hunted:
    """Play seeds with the bug until one shows it."""
    begin, worlds, seed = first or mutant.seed, 0, 0
    for seed in range(begin, begin + 10 * mutant.seeds):
        if worlds == mutant.seeds:
            break
        with tempfile.TemporaryDirectory(prefix="nnha-soak-") as folder:
            world = make_world(seed, Path(folder))
            if not world.dividable:
                continue
            worlds += 1
            try:
                with ExitStack() as planted:
                    mutant.plant(planted)
                    _, found = judge(world, InlineEngine(), Path(folder))
            except Exception as crash:  # noqa: BLE001 - a bug may show by anything
                found = [f"{type(crash).__name__}: {crash}"]
            if found:
                return Hunted(mutant.name, worlds, seed, found[0])
    return Hunted(mutant.name, worlds, None, "")


def _hunt_by_name(first: int | None, name: str) -> Hunted:
    configure_logging("soak", level="error")
    return hunt(next(each for each in MUTANTS if each.name == name), first)


def hunt_all(jobs: int, *, as_object: bool) -> int:
    """Hunt every bug from seed 1 on; 0 only if none survives."""
    began = time.monotonic()
    with workers(jobs) as pool:
        found = list(pool.map(partial(_hunt_by_name, 1), [each.name for each in MUTANTS]))
    for each in found:
        verdict = f"seed {each.seed}" if each.seed is not None else "SURVIVED"
        click.echo(f"{each.name:50} {verdict:10} {each.worlds:3} worlds  {each.why[:90]}", err=True)
    survived = [each.name for each in found if each.seed is None]
    seconds = round(time.monotonic() - began, 1)
    click.echo(f"{len(found)} planted bugs, {len(survived)} survived, {seconds} s", err=True)
    if as_object:
        bugs = [{"bug": e.name, "seed": e.seed, "worlds": e.worlds, "why": e.why} for e in found]
        facts = {"planted": len(found), "survived": survived, "seconds": seconds, "bugs": bugs}
        click.echo(json.dumps(facts))
    return 1 if survived else 0
