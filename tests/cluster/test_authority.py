"""Another authority signs for a cluster under load; ``./run soak security`` has more of it."""

from pathlib import Path

import pytest

from deploy.local.demo.screen import Screen
from tests.campaigns.soak.security import played

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(300)]


def test_an_authority_changes_with_a_failover_in_each_step_and_no_failed_call(
    tmp_path: Path,
) -> None:
    """Check that each step is refused before all daemons are ready, and no daemon restarts."""
    facts = played("authority", tmp_path / "cluster", Screen.on_stderr_if(True))
    assert facts["client_errors"] == 0, facts
    assert facts["role_changes"] == facts["role_changes_asked"] == 3
    assert facts["well"], facts
