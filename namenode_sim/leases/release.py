"""How a file is closed whose writer is gone: at once, or once DataNodes agree on its last block.

See docs/reference/blocks.md#releasing-a-lease.
"""

from collections.abc import Sequence

from ha.record import dataclass
from namenode_sim.blocks.model import Stage


@dataclass(frozen=True, slots=True)
class LastBlock:
    """One of the last blocks of an open file.

    ``enough``: it has the replicas that a complete block needs.  ``places`` is the number of
    DataNodes that are to have it, or have reported it.
    """

    stage: Stage
    length: int
    enough: bool
    places: int


@dataclass(frozen=True, slots=True)
class CloseFile:
    """All is known; the file is closed with the blocks that it has."""


@dataclass(frozen=True, slots=True)
class DropLastAndClose:
    """The last block was never written to: it goes, and the file is closed."""


@dataclass(frozen=True, slots=True)
class RecoverLast:
    """DataNodes must agree on the last block, under a new stamp."""


@dataclass(frozen=True, slots=True)
class RecoveryRuns:
    """A recovery of the last block was started ``seconds`` ago, and has time left."""

    seconds: float


@dataclass(frozen=True, slots=True)
class BlocksWait:
    """Committed blocks wait for replicas; nothing but reports can help."""


@dataclass(frozen=True, slots=True)
class ReportsWait:
    """No DataNode is known to have the last block, and some have not reported what they have."""


@dataclass(frozen=True, slots=True)
class Impossible:
    """More blocks are open than one writer can have open."""

    open_blocks: int


Step = (
    CloseFile
    | DropLastAndClose
    | RecoverLast
    | RecoveryRuns
    | BlocksWait
    | ReportsWait
    | Impossible
)


def release(
    blocks: Sequence[LastBlock],
    recovering_seconds: float | None,
    recovery_timeout_seconds: float,
    *,
    all_reported: bool = True,
) -> Step:
    """Decide on the next step for an open file.

    ``recovering_seconds`` is the time since a recovery of the last block began, None if none did.
    ``all_reported``: all DataNodes had time to register here, and those that did have reported what
    they hold since this NameNode is active; none that was to have the last block has died since.
    """
    waiting = [block for block in blocks if block.stage is not Stage.COMPLETE]
    if not waiting:
        return CloseFile()
    before, last = (None if len(blocks) < 2 else blocks[-2]), blocks[-1]
    whole = {Stage.COMPLETE, Stage.COMMITTED}
    in_order = all(block.stage is Stage.COMPLETE for block in blocks[:-2])
    if not in_order or (before is not None and before.stage not in whole):
        return Impossible(len(waiting))
    if last.stage in whole:
        if before is not None and not before.enough:
            return BlocksWait()
        if last.stage is Stage.COMPLETE or last.enough:
            return CloseFile()
    elif last.places == 0 and last.length == 0:
        if before is not None and not before.enough:
            return BlocksWait()
        # A new active may be asked before the DataNode that holds acknowledged bytes is back.
        return DropLastAndClose() if all_reported else ReportsWait()
    if recovering_seconds is not None and recovering_seconds < recovery_timeout_seconds:
        return RecoveryRuns(recovering_seconds)
    return RecoverLast()
