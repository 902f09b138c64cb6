"""What a learner concludes from what the voters say: may it vote without a writer's word?

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
    """One answer: which disk it is, its promise, its finalized segments and its highest edit."""

    identity: str
    promised: Epoch
    segments: tuple[Segment, ...]
    last_written: TxId
    purged: TxId = NO_TXID


@dataclass(frozen=True, slots=True)
class VoterBaseline:
    """What a majority of voters held when this node was a learner already.

    Whatever this node had acknowledged before it forgot lies below ``reached``: each majority that
    it was part of shares a voter with this one.
    """

    epoch: Epoch
    reached: TxId


def mark(voters: Collection[Voter], epoch: Epoch, nodes: int) -> VoterBaseline:
    """Set the mark for this epoch.

    Raises:
        Fenced, Unavailable: too few voters have promised this epoch, and no newer one.
    """
    require_majority({voter.identity: voter.promised for voter in voters}.items(), epoch, nodes)
    return VoterBaseline(epoch, TxId(max(voter.last_written for voter in voters)))


def require_majority(promises: Iterable[tuple[str, Epoch]], epoch: Epoch, nodes: int) -> None:
    """Check that a majority of all nodes, identified by their disks, has promised just this epoch.

    Raises:
        Fenced: one has promised a newer writer.
        Unavailable: too few have promised this one.
    """
    told = dict(promises)
    newest = max(told.values(), default=epoch)
    if newest > epoch:
        raise Fenced(f"a voter has promised {newest}, newer than {epoch}", promised=newest)
    agree = sum(promised == epoch for promised in told.values())
    if agree < majority(nodes):
        raise Unavailable(
            f"{majority(nodes)} voters besides this learner must have promised {epoch}, and "
            f"{agree} say so"
        )


def word(
    marked: VoterBaseline, voters: Collection[Voter], incarnation: str, nodes: int
) -> AdmitByVoters:
    """Return what this learner must hold for its vote, as a majority of voters lists it now.

    Raises:
        OutOfSync: two of them list different segments.
        Unavailable: too few of them answer.
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
