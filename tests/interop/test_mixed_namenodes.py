"""Hadoop's NameNodes and ours in one cluster, with kills: played by `./run test long`."""

from pathlib import Path

import pytest

from tests.interop.mixed.played import ensure_well, played_on
from tests.interop.mixed.programs import Kind

pytestmark = [pytest.mark.interop, pytest.mark.long, pytest.mark.timeout(1500)]


def test_namenodes_become_ours_and_hadoops_again(tmp_path: Path) -> None:
    """Without blocks, as the client writes them: directories and empty files."""
    with played_on(Kind.OURS, tmp_path) as played:
        played.move_namenodes(Kind.OURS)
        played.play(kills=1, hand_overs=1)
        played.move_namenodes(Kind.HADOOP)
        played.play(kills=1, hand_overs=0)
        ensure_well(played)
