"""Random edits about snapshots themselves, and the table of all random actions."""

from collections.abc import Callable, Iterator

from namenode_sim.edits import ops
from tests.worlds.model_tree import Thing
from tests.worlds.scribe import Draw, Scribe


def act(scribe: Scribe, draw: Draw) -> None:
    ACTIONS[draw(len(ACTIONS))](scribe, draw)


def allow(scribe: Scribe, draw: Draw) -> None:
    free = [
        path
        for path in scribe.model.paths("directory")
        if not scribe.model.is_above_or_below_snapshottable(path)
        and (scribe.for_hadoop or not scribe.model.is_below_moved(path))
    ]
    path = scribe.some(draw, free)
    if path is not None:
        scribe.model.snapshots[scribe.model.at(path).number] = {}
        scribe.write(ops.AllowSnapshot(path))


def disallow(scribe: Scribe, draw: Draw) -> None:
    path = scribe.some(draw, [p for p, taken in _snapshottable(scribe) if not taken])
    if path is not None:
        del scribe.model.snapshots[scribe.model.at(path).number]
        scribe.write(ops.DisallowSnapshot(path))


def _snapshottable(scribe: Scribe) -> Iterator[tuple[str, dict[str, Thing]]]:
    for path in scribe.model.paths("directory"):
        number = scribe.model.at(path).number
        if number in scribe.model.snapshots:
            yield path, scribe.model.snapshots[number]


def take(scribe: Scribe, draw: Draw) -> None:
    path = scribe.some(draw, [path for path, taken in _snapshottable(scribe) if len(taken) < 4])
    if path is None:
        return
    thing, time = scribe.model.at(path), scribe.now()
    free = [f"s{n}" for n in range(9) if f"s{n}" not in scribe.model.snapshots[thing.number]]
    name = free[draw(len(free))]
    scribe.model.take(thing.number, thing, name)
    scribe.model.snapshots[thing.number][name].attributes["mtime"] = time
    scribe.write(ops.CreateSnapshot(path, name, time))


def drop(scribe: Scribe, draw: Draw) -> None:
    chosen = _some_snapshot(scribe, draw)
    if chosen is not None:
        path, taken, name = chosen
        del taken[name]
        scribe.write(ops.DeleteSnapshot(path, name, scribe.now()))


def rename_snapshot(scribe: Scribe, draw: Draw) -> None:
    chosen = _some_snapshot(scribe, draw)
    if chosen is None:
        return
    path, taken, name = chosen
    free = [f"r{n}" for n in range(9) if f"r{n}" not in taken]
    new, time = free[draw(len(free))], scribe.now()
    taken[new] = taken.pop(name)
    taken[new].attributes["mtime"] = time
    scribe.write(ops.RenameSnapshot(path, name, new, time))


def _some_snapshot(scribe: Scribe, draw: Draw) -> tuple[str, dict[str, Thing], str] | None:
    every = [
        (path, taken, name) for path, taken in _snapshottable(scribe) for name in sorted(taken)
    ]
    return every[draw(len(every))] if every else None


ACTIONS: tuple[Callable[[Scribe, Draw], None], ...] = (
    *[Scribe.mkdir] * 3,
    *[Scribe.create] * 4,
    *[Scribe.rename] * 6,
    *[Scribe.delete] * 3,
    *[Scribe.attributes] * 3,
    *[take] * 4,
    *[drop] * 3,
    *[allow] * 2,
    *[Scribe.go_on_writing] * 2,
    *[Scribe.append] * 2,
    *[Scribe.truncate] * 2,
    rename_snapshot,
    disallow,
    Scribe.concat,
    Scribe.policy,
    Scribe.symlink,
)
"""By how often each is drawn."""
