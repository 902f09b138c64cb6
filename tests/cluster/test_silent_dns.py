"""A silent name server neither delays a failover nor keeps a controller out of the election."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cluster.dns_scene import HOSTS, most
from tests.needs import NAMESPACES
from tests.silent_names import ENVIRONMENT, among_names, program

pytestmark = [pytest.mark.cluster, NAMESPACES.mark, pytest.mark.timeout(240)]


def test_a_silent_name_server_costs_nothing(tmp_path: Path) -> None:
    scene = program("tests.cluster.dns_scene", str(tmp_path / "cluster"))
    done = subprocess.run(
        among_names(tmp_path, scene, HOSTS, silent=False),
        env=os.environ | ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seconds = json.loads(done.stdout.splitlines()[-1])
    for what in ("failover", "election"):
        before, silent = seconds[f"{what}, refusing"], seconds[f"{what}, silent"]
        assert silent <= most(before), seconds
