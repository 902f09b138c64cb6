"""Merge the world of a seed both ways, and say what the one in parts did wrong."""

from pathlib import Path

from namenode_sim.checkpoint import merge as whole
from spark.engine.model import Engine
from spark.merge.job import merge_on
from tests.campaigns.soak.checkpoint_compare import problems
from tests.worlds.checkpoint import World


def judge(world: World, engine: Engine, folder: Path) -> tuple[str | None, list[str]]:
    """Merge a world both ways; return why one process did it alone if so, and what is wrong."""
    oracle = whole.merge(world.image, world.edits, folder / "oracle")
    work = folder / "work"
    done = merge_on(
        engine,
        world.image,
        world.edits,
        folder / "out",
        work,
        range_bytes=world.range_bytes,
    )
    alone = done.single_process_because
    found = problems(world.image, oracle.image, done.merged.image, divided=alone is None)
    if done.merged.inodes != oracle.inodes or done.merged.to_txid != oracle.to_txid:
        found.append(f"it tells {done.merged}, the single process {oracle}")
    if world.dividable is not None and world.dividable != (alone is None):
        found.append(f"divided: {alone is None}, expected {world.dividable} ({alone})")
    if left := sorted(work.rglob("*")) if work.exists() else []:
        found.append(f"the work directory still has {[path.name for path in left]}")
    return alone, found
