"""The replicas of a simulated DataNode: on its disks, and in its map while it runs."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from datanode import model
from datanode.replicas.operations import Operation
from datanode.replicas.replica import Next, OperationRefused, decide
from hadoop.blocks import Block, BlockId


class NotDone(Exception):
    """A DataNode refused an operation; nothing has changed there."""

    def __init__(
        self, why: str, *, missing: bool = False, recovery_in_progress: bool = False
    ) -> None:
        super().__init__(why)
        self.missing = missing
        self.recovery_in_progress = recovery_in_progress


@dataclass(slots=True, eq=False)
class Stored:
    """One replica and its bytes.

    ``doomed``: it was taken out of the map, and its files are about to go.  ``lost_its_end``: its
    machine had lost its power, and with it acknowledged bytes.  ``open_length`` is what it had
    before its last operation if its writer's process went on until then.  ``copied_at``: when it
    came as a copy of another, 0 for one that was written here.
    """

    replica: model.Replica
    data: bytes = b""
    doomed: bool = False
    lost_its_end: bool = False
    open_length: int = 0
    copied_at: float = 0.0


def original(replica: model.Replica) -> model.Replica:
    """Return what a replica under recovery was before."""
    return original(replica.original) if isinstance(replica, model.UnderRecovery) else replica


def is_whole(replica: model.Replica) -> bool:
    """Return whether a replica is final, be it under a recovery that has not ended."""
    return isinstance(original(replica), model.Finalized)


@dataclass(slots=True)
class Disks:
    """What outlives the process: replicas by volume, and the claim that was obeyed last."""

    volumes: dict[model.StorageId, dict[BlockId, Stored]]
    claim: bytes | None = None

    def all(self) -> Iterator[Stored]:
        for volume in self.volumes.values():
            yield from volume.values()

    def of(self, block_id: BlockId) -> list[Stored]:
        return [volume[block_id] for volume in self.volumes.values() if block_id in volume]

    def put(self, stored: Stored) -> None:
        self.volumes[stored.replica.storage][stored.replica.block.block_id] = stored

    def remove(self, stored: Stored) -> bool:
        """Remove its files; return False if others have taken their place in the meantime."""
        volume = self.volumes.get(stored.replica.storage, {})
        block_id = stored.replica.block.block_id
        if volume.get(block_id) is not stored:
            return False
        del volume[block_id]
        return True


def restarted(replica: model.Replica) -> model.Replica | None:
    """Return what a DataNode that starts makes of a replica that it finds; None: it goes."""
    match replica:
        case model.Temporary():
            return None
        case model.UnderRecovery():
            return restarted(replica.original)
        case model.BeingWritten():
            return model.WaitingForRecovery(replica.block, replica.storage, replica.length)
        case _:
            return replica


@dataclass(slots=True)
class ReplicaMap:
    """The replicas that a running DataNode knows."""

    disks: Disks
    known: dict[BlockId, Stored] = field(default_factory=dict)

    def load(self) -> None:
        """Take in what lies on the disks; of two replicas of a block the newer one stays."""
        for stored in list(self.disks.all()):
            replica = restarted(stored.replica)
            other = self.known.get(stored.replica.block.block_id)
            if replica is None:
                self.disks.remove(stored)
                continue
            stored.replica, stored.doomed = replica, False
            if other is not None:
                worse, stored = sorted((other, stored), key=_worth)
                self.disks.remove(worse)
            self.known[stored.replica.block.block_id] = stored

    def perform(self, operation: Operation) -> Stored:
        """Carry out an operation that leaves a replica.

        Raises:
            NotDone: if it is refused.
        """
        block_id = operation.block.block_id
        before = self.known.get(block_id)
        outcome = decide(operation, None if before is None else before.replica)
        match outcome:
            case OperationRefused():
                raise NotDone(
                    outcome.why,
                    missing=outcome.missing,
                    recovery_in_progress=outcome.recovery_in_progress,
                )
            case Next(replica=None):
                raise AssertionError("an operation that leaves nothing is the executor's")
            case Next(replica=after, dropped=dropped):
                assert after is not None
                if before is None or dropped:
                    if before is not None:
                        self.disks.remove(before)
                    before = self.known[block_id] = Stored(after)
                    self.disks.put(before)
                was = original(before.replica)
                before.open_length = was.length if isinstance(was, model.BeingWritten) else 0
                before.replica = after
                before.data = before.data[: after.length]
                return before

    def find(self, block: Block) -> Stored:
        """Return the replica of exactly this block; raise NotDone if there is none."""
        stored = self.known.get(block.block_id)
        if stored is None or stored.replica.block != block:
            raise NotDone(f"{block} is not here")
        return stored

    def forget(self, stored: Stored) -> None:
        """Out of the map; the files stay for a while."""
        stored.doomed = True
        if self.known.get(stored.replica.block.block_id) is stored:
            del self.known[stored.replica.block.block_id]


def _worth(stored: Stored) -> tuple[int, bool, int, str]:
    replica = stored.replica
    return (
        replica.block.stamp,
        isinstance(replica, model.Finalized),
        replica.length,
        replica.storage,
    )
