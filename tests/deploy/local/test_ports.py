"""Ports are given once: neither twice by one process, nor by two at the same time."""

import subprocess
import sys

import pytest

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.ports import free_ports
from tests import ROOT

_AMONG = range(19_000, 19_400)
_ASKS = """
import sys
from deploy.local.cluster.ports import free_ports
print(*free_ports(int(sys.argv[1]), range(19_000, 19_400)), flush=True)
sys.stdin.read()
"""


def test_two_processes_are_given_different_ports() -> None:
    """Check this while the other process has bound none of its ports yet."""
    with subprocess.Popen(
        [sys.executable, "-c", _ASKS, "150"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        theirs = {int(port) for port in other.stdout.readline().split()}
        ours = {*free_ports(150, _AMONG)}
        assert len(theirs) == len(ours) == 150
        assert not theirs & ours
        with pytest.raises(LocalClusterError, match=r"between 19000 and 19399.* found \d+"):
            free_ports(150, _AMONG)
        other.communicate()
    assert len(free_ports(150, _AMONG)) == 150, "the other has ended, and its ports are free"
