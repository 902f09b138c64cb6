"""A short soak of write lanes, and that it would see a loss."""

from pathlib import Path

import pytest

from journal.node.owner.owner import JournalOwner
from tests.campaigns.soak.lane import soak


async def test_cut_lanes_lose_nothing(tmp_path: Path) -> None:
    told = await soak(tmp_path, 12, seed=3)
    assert told.lost == []
    assert told.acknowledged > 20
    assert told.cuts
    assert told.over_lanes > 6, "most of it went over lanes"


async def test_a_lane_that_writes_nothing_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JournalOwner, "serve_here", lambda _owner, _request: None)
    told = await soak(tmp_path, 1, seed=8)
    assert told.acknowledged
    assert told.lost
