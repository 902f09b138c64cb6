"""Logs and counts each decision of a journal."""

from collections.abc import Mapping
from functools import cache
from typing import Final

import structlog

from journal.core import requests
from journal.core.replies import Fetch, Manifest, Prepared, Promised, Reply, Resumed
from journal.core.state import JournalState
from journal.errors import BadRequest, JournalError, NotAdmitted
from journal.model import JournalId, Segment
from journal.node import metrics
from journal.refusals import kind_of

log = structlog.get_logger()

_DEBUG: Final = 10

Fact = int | str | None

_PHASES: Final[Mapping[type[requests.Request], str]] = {
    requests.NewEpoch: "epoch",
    requests.PrepareRecovery: "prepare",
    requests.AcceptRecovery: "accept",
    requests.AdoptRecovery: "adopt",
}


@cache
def debugging() -> bool:
    """Return whether debug logs are on; cached, as the check costs as much as a batch."""
    return bool(log.is_enabled_for(_DEBUG))


def narrate(
    journal_id: JournalId,
    request: requests.Request,
    answer: Reply | JournalError,
    state: JournalState,
) -> None:
    """Log and count a decision; batches and heartbeats that succeed only at debug level."""
    name = type(request).__name__
    phase = _PHASES.get(type(request))
    if phase is not None:
        result = "refused" if isinstance(answer, JournalError) else "ok"
        metrics.RECOVERY_CALLS.labels(journal_id, phase, result).inc()
    if isinstance(answer, JournalError):
        reason = kind_of(answer).label
        metrics.REJECTED.labels(journal_id, reason).inc()
        if isinstance(answer, BadRequest) and isinstance(request, requests.Journal):
            metrics.CORRUPT.labels(journal_id).inc()
        usual = isinstance(answer, NotAdmitted) and isinstance(request, requests.Heartbeat)
        if usual and not debugging():
            return  # a learner answers each heartbeat with it
        log.warning(
            "journal.refused",
            journal=journal_id,
            request=name,
            reason=reason,
            message=str(answer),
            promised=state.promised,
            **_request_facts(request),
        )
    elif isinstance(request, requests.Journal | requests.Heartbeat):
        if debugging():
            log.debug(
                "journal.written", journal=journal_id, request=name, **_request_facts(request)
            )
    else:
        log.info(
            "journal.decided",
            journal=journal_id,
            request=name,
            promised=state.promised,
            **_request_facts(request),
            **_reply_facts(answer),
        )


def _request_facts(request: requests.Request) -> dict[str, Fact]:  # noqa: C901, PLR0912 - one case per request
    match request:
        case requests.Format(namespace, force):
            return {"cluster_id": namespace.cluster_id, "force": force}
        case requests.NewEpoch(_, epoch):
            return {"epoch": epoch}
        case requests.StartLogSegment(stamp, first, layout_version):
            return {"epoch": stamp.epoch, "first": first, "layout_version": layout_version}
        case requests.Journal(stamp, segment_first, first, count):
            return {
                "epoch": stamp.epoch,
                "segment": segment_first,
                "first": first,
                "count": count,
            }
        case requests.FinalizeLogSegment(stamp, first, last, digest):
            asked = Segment(first, last, finalized=True, digest=digest or b"")
            return {"epoch": stamp.epoch, **_segment(asked)}
        case requests.PrepareRecovery(stamp, first):
            return {"epoch": stamp.epoch, "first": first}
        case requests.AcceptRecovery(stamp, segment):
            return {"epoch": stamp.epoch, **_segment(segment)}
        case requests.AdoptFinalized(segment, fetched, _):
            return {"fetched": fetched, **_segment(segment)}
        case requests.AdoptRecovery(epoch, segment):
            return {"epoch": epoch, **_segment(segment)}
        case requests.ResumeSegment(stamp, first):
            return {"epoch": stamp.epoch, "first": first}
        case requests.CatchUp(stamp, segment):
            return {"epoch": stamp.epoch, **_segment(segment)}
        case requests.AdoptCatchUp(epoch, segment):
            return {"epoch": epoch, **_segment(segment)}
        case requests.Heartbeat(stamp):
            return {"epoch": stamp.epoch}
        case requests.PurgeLogs(stamp, minimum):
            return {"epoch": stamp.epoch, "minimum": minimum}
        case _:
            return {}


def _reply_facts(reply: Reply) -> dict[str, Fact]:
    match reply:
        case Promised(last_segment_first):
            return {"last_segment": last_segment_first}
        case Prepared(segment, decision, writer, committed):
            return {
                "held": None if segment is None else segment.name(),
                "held_last": None if segment is None else segment.last,
                "accepted_in_epoch": None if decision is None else decision.epoch,
                "writer": writer,
                "committed": committed,
            }
        case Fetch():
            return {"answer": "our copy differs, fetching"}
        case Resumed(next_txid):
            return {"next_txid": next_txid}
        case Manifest(segments):
            return {"segments": len(segments)}
        case _:
            return {}


def _segment(segment: Segment) -> dict[str, Fact]:
    return {"first": segment.first, "last": segment.last, "digest": segment.digest.hex()[:16]}
