"""A candidate's standing as operators see it in /status."""

import json
from collections.abc import Mapping
from datetime import datetime

from ha.notices.model import Pause, encode_member, encode_pause
from ha.zkfc.candidacy.failback import seconds_left
from ha.zkfc.candidacy.flapping import too_many
from ha.zkfc.candidacy.state import Candidacy


def standing_page(candidacy: Candidacy, *, now: float, wall: datetime) -> Mapping[str, object]:
    """Return the part of /status that shows why this NameNode is, or is not, a candidate.

    Keys never disappear; ``notices_known`` is false until ZooKeeper was read for the first time.
    """
    standing = candidacy.standing
    notices = standing.notices
    members = () if notices is None else notices.members
    return {
        "out_because": candidacy.out_because,
        "waits_for_higher_rank": candidacy.waits,
        "kept_because": candidacy.kept_because,
        "notices_known": notices is not None,
        "pause": None if notices is None else _notice(notices.pause, wall),
        "drain": None if notices is None else _notice(notices.drain, wall),
        "untrusted_znodes": [] if notices is None else list(notices.untrusted),
        "lock_holder": None if notices is None else notices.lock_holder,
        "ready": standing.ready,
        "not_ready_reason": standing.not_ready_reason,
        "nofailover": standing.rank.nofailover,
        "priority": standing.rank.priority,
        "fail_back_in_seconds": seconds_left(candidacy.fail_back, standing, now),
        "flapping": too_many(candidacy.flapping, now),
        "members": [json.loads(encode_member(member)) for member in members],
    }


def _notice(notice: Pause | None, wall: datetime) -> object:
    if notice is None:
        return None
    shown: dict[str, object] = json.loads(encode_pause(notice))
    left = None
    if notice.until is not None:
        left = round((notice.until - wall).total_seconds(), 1)
    return {**shown, "seconds_left": left}
