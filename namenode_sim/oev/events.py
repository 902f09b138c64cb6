"""What passes from a source of edits to a sink: the parts of an edit log in their order."""

from collections.abc import Iterator
from typing import Protocol

from ha.record import dataclass, replace
from journal.model import TxId
from namenode_sim.edits.ops import Op
from namenode_sim.edits.recovery import Skipped


@dataclass(frozen=True, slots=True)
class Start:
    """The header; always the first."""

    layout: int


@dataclass(frozen=True, slots=True)
class Edit:
    """One op.  ``frame`` is its bytes where they are known."""

    txid: TxId
    op: Op
    frame: bytes | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """Sound ops end or are interrupted here; the bytes follow as ``Opaque``."""

    skipped: Skipped


@dataclass(frozen=True, slots=True)
class Opaque:
    """Bytes that are no op."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Padding:
    """Runs of one byte each, as pairs of byte and count."""

    runs: tuple[tuple[int, int], ...]


Event = Start | Edit | Lost | Opaque | Padding


class Source(Protocol):
    """Where edits come from."""

    @property
    def size(self) -> int:
        """Bytes to read in all."""

    @property
    def position(self) -> int:
        """Bytes read so far."""

    def events(self) -> Iterator[Event]:
        """Yield the parts in their order.

        Raises:
            EditsError: at the first part that is not sound.
        """


class Sink(Protocol):
    """Where edits go to."""

    def take(self, event: Event) -> None:
        """Write one part."""

    def finish(self) -> None:
        """Write what belongs at the end, also after damage."""


def renumbered(events: Iterator[Event]) -> Iterator[Event]:
    """Yield the same ops, without gaps from the first one's txid on (oev's ``--fix-txids``)."""
    expected = 0
    for event in events:
        if not isinstance(event, Edit):
            yield event
            continue
        if expected <= 0:
            expected = max(event.txid, 1)
        if event.txid == expected:
            yield event
        else:
            yield replace(event, txid=TxId(expected), frame=None)
        expected += 1
