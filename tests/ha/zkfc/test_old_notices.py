"""Notices of a lock from before ours: they are read in another session, and may lag behind."""

from dataclasses import replace
from typing import Any

import pytest

from ha.notices.seen import FREE, Notices
from ha.zkfc.candidacy import model
from ha.zkfc.candidacy.core import step
from ha.zkfc.candidacy.model import CedeAsked, Join, NoticesSeen
from tests.ha.zkfc.elections import ELECTED_AS_PLANNED, LOCK_WON
from tests.ha.zkfc.test_standing import NOW, PAUSE, PEER, candidacy, inside

_ACTIVE_PEER = (replace(PEER, state="active"),)
NEWS = {
    "no news since": ((), True),
    "of a lock from before ours": ((7, _ACTIVE_PEER), True),
    "of a lock from before ours, whose holder's controller is gone": ((7, ()), True),
    "of a newer lock, whose holder is not active yet": ((9, (PEER,)), True),
    "of a newer lock, whose holder is active": ((9, _ACTIVE_PEER), False),
    "of a newer lock of a controller of Hadoop's": ((9, ()), False),
}


@pytest.mark.parametrize("seen_first", [True, False], ids=["lock seen, then news", "news first"])
@pytest.mark.parametrize(("news", "returns"), NEWS.values(), ids=NEWS)
def test_old_news_of_another_active_does_not_end_the_way_back(
    news: tuple[Any, ...], *, returns: bool, seen_first: bool
) -> None:
    """Win lock 8, and cede while the notices lag behind the election: they must not be believed."""
    state = inside(candidacy(Notices(pause=PAUSE, lock_holder="nn2", lock_made=5)))
    heard: list[model.Event] = [model.OwnLockSeen(8)]
    if news:
        seen = Notices(pause=PAUSE, lock_holder="nn2", lock_made=news[0], members=news[1])
        heard.append(NoticesSeen(seen))
    for event in (
        model.HandOverBegun(), LOCK_WON, ELECTED_AS_PLANNED, model.HandOverEnded(),
        *(heard if seen_first else reversed(heard)),
    ):  # fmt: skip
        state = step(state, event, now=NOW).state
    ceded = step(state, CedeAsked(10.0, needs_fencing=False), now=NOW).state
    free = Notices(pause=PAUSE, lock_holder=FREE, members=(PEER,))
    later = step(ceded, NoticesSeen(free), now=NOW + 1).state
    back = step(later, model.CedeEnded(), now=NOW + 2)
    assert back.decisions == ((Join(),) if returns else ())
