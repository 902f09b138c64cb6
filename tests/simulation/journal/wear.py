"""Faults of disks: replaced, restored from another copy, damaged.

The fault atlas: only a fixed minority of the nodes is ever hit, and rot only where what it hits is
known to be on a quorum.  Of everything acknowledged a good copy stays, so every failure is a bug.
"""

import re
from random import Random
from typing import TYPE_CHECKING, Final

from tests.simulation.journal.nemesis import Event
from tests.simulation.journal.platter import Inode
from tests.simulation.journal.tags import TRANSACTION_BYTES

if TYPE_CHECKING:
    from tests.simulation.journal.machine import Machine
    from tests.simulation.journal.world import World

_HEADER_BYTES: Final = 8
_SEGMENT: Final = re.compile(r"edits_(?:inprogress_)?(\d+)(?:-(\d+))?\Z")


def fragile(world: "World") -> list[str]:
    """Return the nodes whose disks are lost in a world: a minority."""
    names = sorted(world.machines)
    return world.faults.random("fragile").sample(names, (len(names) - 1) // 2)


def wear(event: Event, world: "World") -> None:
    """Let it happen to one of the nodes that things happen to."""
    victims = fragile(world)
    machine = world.machines[victims[event.victim % len(victims)]]
    if event.kind in {"rot", "rot-newest"}:
        _rot(machine, event, world)
        return
    if not world.faults.allowed(event.name):
        return
    others = [name for name in sorted(world.machines) if name != machine.name]
    source = world.machines[others[event.other % len(others)]]
    machine.kill("its disk is replaced", event.name)
    platter = machine.platter
    watcher, platter.watcher = platter.watcher, lambda: None
    if event.kind == "wipe":
        platter.wipe()
        machine.format(founding=False)
    else:
        world.trace.add(machine.name, f"gets a copy of {source.name}'s folder")
        platter.copy(source.platter, source.name, machine.name)
    platter.watcher = watcher
    world.oracle.reborn(machine.name)
    world.loop.call_later(event.lasts, world.restart, machine)


def _rot(machine: "Machine", event: Event, world: "World") -> None:
    """Flip one bit of an edit that is known to be on a quorum."""
    rng = Random(event.other)
    names = machine.platter.durable
    current = machine.root / "current"
    known = names.get(current / "committed-txid")
    committed = 0
    if known is not None and len(known.cached) == 8:
        machine.platter.sync(known)  # the kernel has written it back long ago
        committed = int.from_bytes(known.cached, "big", signed=True)
    spots: list[tuple[Inode, int]] = []
    for path, inode in sorted(names.items()):
        found = _SEGMENT.match(path.name)
        if found is None or path.parent != current or inode.flips:
            continue
        first = int(found[1])
        last = min(committed, int(found[2] or committed))
        end = min(len(inode.durable), _HEADER_BYTES + (last + 1 - first) * TRANSACTION_BYTES)
        if end > _HEADER_BYTES and machine.platter.cached.get(path) is inode:
            spots.append((inode, end))
    if not spots or not world.faults.allowed(event.name):
        return
    inode, end = spots[-1] if event.kind == "rot-newest" else rng.choice(spots)
    at = rng.randrange(_HEADER_BYTES, end)
    machine.disk_was_hurt = True
    world.trace.add(machine.name, f"a bit of byte {at} of {end} rots", event.name)
    inode.rot(at, 1 << rng.randrange(8))
