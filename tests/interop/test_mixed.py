"""Hadoop's daemons and ours in one cluster, replaced by each other while a Java client writes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local.screen import Screen
from tests.campaigns.soak.java import campaign
from tests.interop.hadoop_jars import JarsMissing
from tests.interop.mixed.campaign import Campaign
from tests.interop.mixed.programs import Kind
from tests.needs import HADOOP_SERVER

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1500)]


@pytest.fixture
def on_ours(tmp_path: Path) -> Iterator[Campaign]:
    """Hadoop's NameNodes on our JournalNodes and ZKFCs."""
    yield from _played(tmp_path, Kind.OURS)


@pytest.fixture
def on_hadoops(tmp_path: Path) -> Iterator[Campaign]:
    """A cluster of Hadoop's daemons only."""
    yield from _played(tmp_path, Kind.HADOOP)


def _played(folder: Path, kind: Kind) -> Iterator[Campaign]:
    try:
        with campaign(folder, Screen.on_stderr_if(True), kind) as played:
            yield played
    except JarsMissing as missing:
        HADOOP_SERVER.skip(str(missing))


def test_a_running_cluster_of_hadoop_becomes_ours_and_hadoops_again(on_hadoops: Campaign) -> None:
    on_hadoops.move_journalnodes(Kind.OURS)
    on_hadoops.move_zkfcs(Kind.OURS)
    on_hadoops.play(kills=2, hand_overs=1)
    on_hadoops.wipe()
    on_hadoops.move_zkfcs(Kind.HADOOP)
    on_hadoops.move_journalnodes(Kind.HADOOP)
    on_hadoops.play(kills=1, hand_overs=0)
    _ensure_well(on_hadoops)


def test_namenodes_become_ours_and_hadoops_again(on_ours: Campaign) -> None:
    """Without blocks, as the client writes them: directories and empty files."""
    on_ours.move_namenodes(Kind.OURS)
    on_ours.play(kills=1, hand_overs=1)
    on_ours.move_namenodes(Kind.HADOOP)
    on_ours.play(kills=1, hand_overs=0)
    _ensure_well(on_ours)


def _ensure_well(played: Campaign) -> None:
    facts = played.facts()
    findings = ("missing_writes", "duplicated_writes", "errors", "both_active_looks")
    assert not {name: facts[name] for name in findings if facts[name]}
    assert (facts["gaps"], facts["diverging"]) == (0, 0)
