"""Two rounds of ``./run soak prepare``, of which ``./run soak prepare --count 50`` plays more."""

import json

import pytest
from click.testing import CliRunner

from tests.campaigns.soak.prepare import main

pytestmark = pytest.mark.cluster  # real processes, killed and started again


def test_two_namenodes_that_prepare_at_once_have_one_cluster_id() -> None:
    told = CliRunner().invoke(main, ["--count", "2", "--seed", "1", "--json"])
    assert told.exit_code == 0, told.output
    shown = json.loads(told.stdout.splitlines()[-1])
    assert (shown["rounds"], shown["one_cluster"] + shown["refused"], shown["wrong"]) == (2, 2, [])
