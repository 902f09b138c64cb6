"""Somebody who may speak to every node and says what no writer would: stamps of all extremes, and
what must be refused whatever its stamp says.

It forges no edits and closes nothing: what a stranger with a writer's rights can destroy is for
rights to prevent.  What it says here must do no harm that lasts.
"""

import asyncio
from random import Random
from typing import TYPE_CHECKING, Final

from google.protobuf.message import Message

from journal.core.state import JournalState
from journal.messages import namespace_message
from journal.model import MAX_EPOCH_LEAP
from journal.proto import journal_pb2 as pb
from tests.simulation.journal import nonsense
from tests.simulation.journal.machine import JOURNAL, MAX_LEASE_SECONDS, NAMESPACE, Machine
from tests.simulation.journal.swarm import WEAR_KINDS

if TYPE_CHECKING:
    from tests.simulation.journal.world import World

NAME: Final = "z1"
_KINDS: Final = ("heartbeat", "heartbeat", "batch", "PurgeLogs", "PrepareRecovery", "NewEpoch")
_SERIALS: Final = (0, 1, 7, 2**31, 2**32 + 7, 2**47, 2**62)
_BEYOND: Final = (1, 2**31, 2**33)
_GROWTH: Final = 1000
_LEASES: Final = (0.0, 0.1, MAX_LEASE_SECONDS, MAX_LEASE_SECONDS + 1, 86_400.0)


async def speak(world: "World", until: float) -> None:
    """Send something every now and then, to one node after the other."""
    rng, more = world.faults.random("byzantine"), world.faults.random("nonsense")
    names = sorted(world.machines)
    # A disk that is replaced or copied takes an absurd promise with it: that needs an operator.
    worn = world.swarm.rejoin or any(world.swarm.events.get(kind) for kind in WEAR_KINDS)
    far = None if worn else world.faults.random("fragile").choice(names)
    said = nonsense.theme(more, world.swarm.rejoin) if world.swarm.long else {}
    number = 0
    while world.loop.time() < until:
        await asyncio.sleep(rng.choice((0.05, 0.3, 1.0)) * rng.random())
        number += 1
        machine = world.machines[rng.choice(names)]
        kind, request = _drawn(machine, rng, leaps=machine.name == far)
        state = None if machine.owner is None else machine.owner.state
        if state is not None and more.random() < (0.9 if said else 0.5):
            kind, request = nonsense.drawn(state, more, said) or (kind, request)
        name = f"byzantine@{number}"
        if not world.faults.allowed(name):
            continue
        world.trace.add(NAME, f"{kind} to {machine.name}: {_told(request)}", name)
        if isinstance(request, pb.WriteRequest):
            machine.open_stream("Write", _ignored).feed(request.SerializeToString())
        else:
            machine.unary(kind, request.SerializeToString(), _ignored)


def _drawn(machine: Machine, rng: Random, *, leaps: bool) -> tuple[str, Message]:
    """Draw a request.  Only one node is led to the largest leap: the others stay together."""
    state = None if machine.owner is None else machine.owner.state
    leaps = leaps and state is not None and not state.learner
    promised = 0 if state is None else int(state.promised)
    far = promised + MAX_EPOCH_LEAP
    # Where no leap is meant, the promise may still grow before this arrives.
    too_far = far + (1 if leaps else _GROWTH)
    epochs = (1, promised - 1, promised, promised, promised + 1, too_far, 2**62)
    epoch = max(1, rng.choice((*epochs, far) if leaps else epochs))
    kind = rng.choice(_KINDS)
    if kind == "NewEpoch":
        asked = namespace_message(NAMESPACE)
        return kind, pb.NewEpochRequest(journal_id=JOURNAL, namespace_info=asked, epoch=epoch)
    info = pb.RequestInfo(
        journal_id=JOURNAL,
        epoch=epoch,
        serial=rng.choice(_SERIALS),
        committed_txid=_claim(state, rng.choice((None, 0, *_BEYOND, 2**61))),
        read_lease_micros=int(1e6 * rng.choice(_LEASES)),
        namespace_id=rng.choice((None, NAMESPACE.namespace_id, 1)),
    )
    match kind:
        case "PurgeLogs":
            return kind, pb.PurgeLogsRequest(info=info, min_txid_to_keep=1)
        case "PrepareRecovery":
            return kind, pb.PrepareRecoveryRequest(info=info, segment_first_txid=1)
        case "batch":
            return kind, pb.WriteRequest(info=info, batch=pb.Batch(segment_first_txid=1))
        case _:
            return kind, pb.WriteRequest(info=info, heartbeat=pb.Heartbeat())


def _claim(state: JournalState | None, drawn: int | None) -> int | None:
    """Return what it claims to be committed; some claims are counted from the last edit here.

    Not about edits that are under way: an intruder that has the epoch and the serial of their
    writer can claim that they are committed before they are, and no node can distinguish that from
    the writer's own word.
    """
    last = 0 if state is None else max(0, int(state.last_written))
    if drawn not in _BEYOND:
        return drawn
    return 0 if state is not None and state.committed < last else last + drawn


def _told(request: Message) -> str:
    return " ".join(str(request).replace(chr(10), " ").split())


def _ignored(_reply: object) -> None:
    """Ignore a reply."""
