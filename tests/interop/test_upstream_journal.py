"""Hadoop's own tests of its journal, standbys and observers pass on nnha's JournalNodes."""

from pathlib import Path
from typing import Final

import pytest

from tests.interop import upstream_tests
from tests.needs import JAVA_COMPILER, UPSTREAM_KDC, UPSTREAM_TESTS

pytestmark = [pytest.mark.interop, JAVA_COMPILER.mark, UPSTREAM_TESTS.mark]

_HDFS: Final = "org.apache.hadoop.hdfs"
_MANAGER: Final = f"{_HDFS}.qjournal.client.TestQuorumJournalManager"
_OBSERVER: Final = f"{_HDFS}.server.namenode.ha.TestObserverNode"
CLASSES: Final = {
    "TestQuorumJournalManager": (_MANAGER, 32),
    "TestQJMWithFaults": (f"{_HDFS}.qjournal.client.TestQJMWithFaults", 3),
    "TestObserverNode": (_OBSERVER, 21),
    "TestStandbyInProgressTail": (f"{_HDFS}.server.namenode.ha.TestStandbyInProgressTail", 10),
}
INTO_THE_JVM: Final = frozenset(
    {
        "TestQuorumJournalManager.testCrashBetweenSyncLogAndPersistPaxosData",
        "TestStandbyInProgressTail.testCorruptJournalCache",
    }
)
"""These change the JournalNode's objects in the test's own JVM, where ours are not."""
SECURE: Final = f"{_HDFS}.qjournal.TestSecureNNWithQJM"
SHORT: Final = (
    f"{_MANAGER}#testSelectViaRpcTwoJNsError",
    f"{_MANAGER}#testSelectViaRPCAfterJNJitter",
    f"{_OBSERVER}#testSimpleRead",
)


def test_a_reader_counts_and_an_observer_is_up_to_date(tmp_path: Path) -> None:
    selectors = [part for method in SHORT for part in ("-m", method)]
    found = upstream_tests.run(tmp_path, selectors, seconds=280, test_seconds=60)
    assert not found.failed
    assert len(found.ran) == len(SHORT), (tmp_path / "console.txt").read_text()


@pytest.mark.long
@pytest.mark.timeout(2000)
@pytest.mark.parametrize("name", CLASSES)
def test_all_but_what_looks_into_the_node(tmp_path: Path, name: str) -> None:
    whole, count = CLASSES[name]
    found = upstream_tests.run(tmp_path, ["-c", whole], seconds=1900, test_seconds=1800)
    assert set(found.failed) <= INTO_THE_JVM, found.failed
    assert len(found.ran) == count, (tmp_path / "console.txt").read_text()


@pytest.mark.long
@pytest.mark.timeout(900)
@UPSTREAM_KDC.mark
def test_a_secure_namenode_over_https(tmp_path: Path) -> None:
    found = upstream_tests.run(
        tmp_path, ["-c", SECURE], seconds=800, test_seconds=300, secure=SECURE
    )
    assert not found.failed, found.failed
    assert len(found.ran) == 2, (tmp_path / "console.txt").read_text()
