"""Hadoop's daemons and ours in one cluster, with kills: played by `./run test long`."""

from pathlib import Path

import pytest

from tests.interop.mixed.played import ensure_well, played_on
from tests.interop.mixed.programs import Kind

pytestmark = [pytest.mark.interop, pytest.mark.long, pytest.mark.timeout(1500)]


def test_a_running_cluster_of_hadoop_becomes_ours_and_hadoops_again(tmp_path: Path) -> None:
    with played_on(Kind.HADOOP, tmp_path) as played:
        played.move_journalnodes(Kind.OURS)
        played.move_zkfcs(Kind.OURS)
        played.play(kills=2, hand_overs=1)
        played.wipe()
        played.move_zkfcs(Kind.HADOOP)
        played.move_journalnodes(Kind.HADOOP)
        played.play(kills=1, hand_overs=0)
        ensure_well(played)
