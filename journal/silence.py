"""For how long a majority of the nodes has not heard the newest writer, as far as that is certain.

A controller asks this where the owner of the lock does not answer.  A writer of ours that can write
at all is heard by a majority every quarter of its read lease, also while it has nothing to write.

Not every node that answers counts as a witness.  One that was started again has heard no writer,
and does not know which kind of writer it has not heard; one that has promised a newer epoch expects
another writer; a writer without a read lease (Hadoop's) may well be silent while it lives.

See docs/reference/quorum-journal.md#silence.

Pure.
"""

from collections.abc import Collection

from ha.record import dataclass
from journal.model import NO_EPOCH, Epoch
from journal.quorum import majority


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What one node reports.  All of it is durations: no two clocks are ever compared."""

    promised: Epoch
    writer: Epoch
    """The writer heard last since the node was started; NO_EPOCH where it has heard none."""
    ago_seconds: float
    """How long ago that was."""
    lease_seconds: float
    """The read lease that this writer announced; 0 where it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """What the nodes say together."""

    nodes: int
    """How many the journal has."""
    witnesses: int
    """The number of nodes that have heard the newest writer themselves, one that sends heartbeats.
    """
    epoch: Epoch
    """The newest writer's."""
    silent_seconds: float
    """How long a majority of all nodes has not heard it; 0 without a majority of witnesses."""
    lease_seconds: float
    """The longest read lease that a node reports."""


def weigh(told: Collection[Heard], *, nodes: int) -> Silence:
    """Weigh the answers of those that have answered against all ``nodes``."""
    epoch = max((one.promised for one in told), default=NO_EPOCH)
    ago = sorted((one.ago_seconds for one in told if _witness(one, epoch)), reverse=True)
    needed = majority(nodes)
    return Silence(
        nodes=nodes,
        witnesses=len(ago),
        epoch=epoch,
        silent_seconds=ago[needed - 1] if len(ago) >= needed else 0.0,
        lease_seconds=max((one.lease_seconds for one in told), default=0.0),
    )


def _witness(one: Heard, epoch: Epoch) -> bool:
    return one.writer == one.promised == epoch and one.lease_seconds > 0
