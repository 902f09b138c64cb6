"""When a standby saves its namespace, and to whom it ships the image.

A failed upload is remembered by itself: Hadoop's standby finds its image saved already at the next
look and does not ship it again before new edits come.

See docs/reference/namenode.md#checkpoints-of-a-standby.

Pure.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import assert_never

from ha.record import dataclass, field, replace
from journal.model import TxId


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRules:
    """Hadoop's triggers: dfs.namenode.checkpoint.{period,txns,check.period,...}."""

    period_seconds: float = 3600.0
    edits: int = 1_000_000
    check_seconds: float = 60.0
    quiet_multiplier: float = 1.5
    """A standby whose images another one's forestall tries again after this number of periods."""

    @property
    def pause_seconds(self) -> float:
        """How long to sleep between two looks."""
        return min(self.check_seconds, self.period_seconds)


class UploadAnswer(Enum):
    """What a NameNode said to an image."""

    ACCEPTED = auto()
    NOT_ACTIVE = auto()
    HAS_NEWER = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class Shipment:
    """How shipping to one NameNode has gone."""

    forestalled_at: float | None = None
    """When it last reported a newer image; None as long as it takes ours."""
    offered: TxId = TxId(0)
    """The newest image that it has answered for, whatever it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointState:
    """What the schedule depends on; times are on one monotonic clock, in seconds."""

    last_at: float
    """The last checkpoint, or the start: the first by time comes one period after it."""
    last_txid: TxId
    """What the newest image holds."""
    shipments: Mapping[str, Shipment] = field(default_factory=dict)


def due_reason(state: CheckpointState, rules: CheckpointRules, applied: TxId, now: float) -> str:
    """Return why the namespace is to be saved now; empty if it is not."""
    waiting = applied - state.last_txid
    if waiting <= 0:
        return ""
    if waiting >= rules.edits:
        return f"{waiting} edits are in no image"
    if now - state.last_at >= rules.period_seconds:
        return f"the last checkpoint was {now - state.last_at:.0f} s ago"
    return ""


def note_saved(state: CheckpointState, txid: TxId, now: float) -> CheckpointState:
    return replace(state, last_at=now, last_txid=txid)


def targets_for(
    state: CheckpointState, rules: CheckpointRules, others: tuple[str, ...], now: float
) -> tuple[str, ...]:
    """Return the NameNodes to which the newest image goes now."""
    quiet = rules.period_seconds * rules.quiet_multiplier
    wanted = []
    for name in others:
        shipment = state.shipments.get(name, Shipment())
        if shipment.offered >= state.last_txid:
            continue
        since = shipment.forestalled_at
        if since is None or now - since >= quiet:
            wanted.append(name)
    return tuple(wanted)


def note_answer(
    state: CheckpointState, name: str, txid: TxId, answer: UploadAnswer, now: float
) -> CheckpointState:
    """Return the state after a NameNode has answered or failed: then the image is offered again."""
    before = state.shipments.get(name, Shipment())
    match answer:
        case UploadAnswer.ACCEPTED:
            after = Shipment(offered=txid)
        case UploadAnswer.HAS_NEWER:
            after = Shipment(forestalled_at=now, offered=txid)
        case UploadAnswer.NOT_ACTIVE:
            # Nothing is known of it as an active; after a failover the next image is for it.
            after = replace(before, offered=txid)
        case UploadAnswer.FAILED:
            return state
        case _:
            assert_never(answer)
    return replace(state, shipments={**state.shipments, name: after})
