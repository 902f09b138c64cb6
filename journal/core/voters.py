"""Decides from the voters' answers whether a learner gets its vote back without a writer.

See docs/reference/quorum-journal.md#a-vote-without-the-writers-word.
"""

from collections.abc import Collection, Iterable

from ha.record import dataclass
from journal.core.requests import AdmitByVoters
from journal.errors import Fenced, OutOfSync, Unavailable
from journal.model import NO_TXID, Epoch, Segment, TxId
from journal.quorum import majority


@dataclass(frozen=True, slots=True)
class Voter:
    """The answer of one voter: its disk, its promise, its finalized segments and highest edit."""

    identity: str
    promised: Epoch
    segments: tuple[Segment, ...]
    last_written: TxId
    purged: TxId = NO_TXID


@dataclass(frozen=True, slots=True)
class VoterBaseline:
    """The highest edit of a majority of voters when this node was a learner already.

    All edits that this node acknowledged before it lost them are below ``reached``: each majority
    that it was part of has a voter in common with this one.
    """

    epoch: Epoch
    reached: TxId


def set_baseline(voters: Collection[Voter], epoch: Epoch, nodes: int) -> VoterBaseline:
    """Return the baseline for this epoch.

    Raises:
        Fenced, Unavailable: no majority of voters has this epoch as its promise.
    """
    require_majority({voter.identity: voter.promised for voter in voters}.items(), epoch, nodes)
    return VoterBaseline(epoch, TxId(max(voter.last_written for voter in voters)))


def require_majority(promises: Iterable[tuple[str, Epoch]], epoch: Epoch, nodes: int) -> None:
    """Check that a majority of all nodes, by their disks, has this epoch as its promise.

    Raises:
        Fenced: one has promised a newer epoch.
        Unavailable: too few have promised this one.
    """
    promised_by = dict(promises)
    newest = max(promised_by.values(), default=epoch)
    if newest > epoch:
        raise Fenced(f"a voter has promised {newest}, newer than {epoch}", promised=newest)
    agree = sum(promised == epoch for promised in promised_by.values())
    if agree < majority(nodes):
        raise Unavailable(
            f"{majority(nodes)} voters besides this learner must have promised {epoch}, and "
            f"{agree} say so"
        )


def admission_request(
    marked: VoterBaseline, voters: Collection[Voter], incarnation: str, nodes: int
) -> AdmitByVoters:
    """Return the request for the vote, with the segments that the voters have finalized.

    Raises:
        OutOfSync: two voters list different segments.
        Unavailable: too few voters answered.
    """
    if len({voter.identity for voter in voters}) < majority(nodes):
        raise Unavailable(f"{majority(nodes)} voters besides this learner must answer")
    found: dict[TxId, Segment] = {}
    for voter in voters:
        for told in voter.segments:
            known = found.setdefault(told.first, told)
            digests = {known.digest, told.digest} - {b""}
            if known.last != told.last or len(digests) > 1:
                raise OutOfSync(f"the voters do not agree about {told.name()}")
            if told.digest:
                found[told.first] = told
    required = tuple(found[first] for first in sorted(found))
    purged = max(voter.purged for voter in voters)
    return AdmitByVoters(incarnation, marked.epoch, required, marked.reached, purged)
