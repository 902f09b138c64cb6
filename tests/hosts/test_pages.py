"""The operator's guide leads to a cluster over several hosts, and to Prometheus that sees it."""

from pathlib import Path

import pytest

from tests import needs
from tests.campaigns.soak.faults import network
from tests.hosts import lab, pages
from tests.hosts.walk import walk

LACKING = network.lacking()
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(LACKING), reason=f"no hosts: {LACKING}"),
]


def test_the_guide_ends_with_a_file_read_after_a_failover(tmp_path: Path) -> None:
    """The other pages take longer: ``./run soak hosts``."""
    with lab.running(tmp_path) as hosts:
        walk(hosts, pages.first_day())
        if needs.PROMETHEUS.here:
            walk(hosts, pages.page("metrics.md"))
    assert network.namespaces_of(hosts.run_id) == []
