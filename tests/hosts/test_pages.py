"""docs/operations.md leads to a cluster over several hosts, command by command."""

from pathlib import Path

import pytest

from tests import ROOT
from tests.campaigns.soak.faults import network
from tests.hosts import lab
from tests.hosts.page import steps
from tests.hosts.walk import walk

NEXT = "\n## Restart, replace, renew\n"
"""What comes then takes minutes: ``./run soak hosts``."""
LACKING = network.lacking()
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(LACKING), reason=f"no hosts: {LACKING}"),
]


def test_the_guide_ends_with_a_file_read_after_a_failover(tmp_path: Path) -> None:
    guide, _, _ = (ROOT / "docs" / "operations.md").read_text().partition(NEXT)
    with lab.running(tmp_path) as hosts:
        walk(hosts, steps(guide))
    assert network.namespaces_of(hosts.run_id) == []
