"""Workers of a campaign end with the process that opened their pool."""

import os
import select
import signal
import subprocess
import sys

import pytest

from tests import ROOT

PROGRAM = """\
import os, signal
from tests.campaigns.workers import workers

def begun(word):
    assert word == "begin"
    os.write(1, f"{os.getpid()}\\n".encode())

with workers(2, begun, "begin") as pool:
    list(pool.map(signal.sigwait, [[signal.SIGUSR1]] * 2))
"""
SECONDS = 30.0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_their_campaign(number: signal.Signals) -> None:
    words = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as campaign:
        assert campaign.stdout is not None
        ends = [os.pidfd_open(int(campaign.stdout.readline())) for _ in range(2)]
        campaign.send_signal(number)
    try:
        for end in ends:
            assert select.select([end], [], [], SECONDS)[0] == [end]
    finally:
        for end in ends:
            os.close(end)
