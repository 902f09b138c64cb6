"""When the event loop waits for the disk, and when it has learnt not to."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from journal.node.owner.disk_wait import QUICK_IN_A_ROW, WAIT_SECONDS, Patience


def patient() -> Patience:
    patience = Patience()
    for _ in range(QUICK_IN_A_ROW):
        assert not patience.worth_it
        patience.took(WAIT_SECONDS / 10)
    assert patience.worth_it
    return patience


def test_one_slow_sync_takes_the_patience_away() -> None:
    patience = patient()
    patience.took(WAIT_SECONDS * 2)
    assert not patience.worth_it


def test_work_that_hangs_is_left_to_its_thread() -> None:
    patience, hangs = patient(), threading.Event()

    def hang() -> None:
        hangs.wait()

    with ThreadPoolExecutor(1) as thread:
        began = time.perf_counter()
        started = patience.run(thread, hang)
        assert time.perf_counter() - began >= WAIT_SECONDS
        assert not started.done()
        assert not patience.worth_it
        hangs.set()
        assert started.result() is None


def test_work_that_fails_is_done() -> None:
    def fail() -> None:
        raise OSError("no space left")

    with ThreadPoolExecutor(1) as thread:
        assert isinstance(patient().run(thread, fail).exception(), OSError)
