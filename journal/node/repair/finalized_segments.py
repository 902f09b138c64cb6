"""What a node reports to its peers: which segments are finalized here, and their digests."""

from dataclasses import replace
from typing import Final

from journal.core.replies import Manifest
from journal.core.requests import GetEditLogManifest, LearnDigest
from journal.model import TxId
from journal.node.owner.owner import JournalOwner

MAX_DIGESTS_PER_CALL: Final = 8


async def peer_manifest(owner: JournalOwner, since: TxId) -> Manifest:
    """Return our finalized segments with their digests.

    Where a digest is not known, as in files that Hadoop wrote, it is computed; at most a few in
    each call, and what is still unknown then is left out until the next.
    """
    listed = _listed(owner, since)
    for segment in [one for one in listed.segments if not one.digest][:MAX_DIGESTS_PER_CALL]:
        await owner.ask(LearnDigest(segment.first))
    listed = _listed(owner, since)
    known = tuple(one for one in listed.segments if one.finalized and one.digest)
    return replace(listed, segments=known)


def _listed(owner: JournalOwner, since: TxId) -> Manifest:
    listed = owner.read(GetEditLogManifest(since))
    assert isinstance(listed, Manifest)
    return listed
