"""Asks every NameNode all the time what it is, and remembers who was active in which epoch."""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from deploy.local.cluster import state
from tests.campaigns.soak.faults.hosts import NAMENODES
from tests.campaigns.soak.faults.nnha import url

EVERY_SECONDS: Final = 0.25
LOOK_SECONDS: Final = 1.0


@dataclass(slots=True)
class Watch:
    """What was seen: of each epoch, which processes called themselves active in it."""

    looks: int = 0
    claims: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def watching(self) -> Iterator["Watch"]:
        threads = [threading.Thread(target=self._look_at, args=(host,)) for host in NAMENODES]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def _look_at(self, host: str) -> None:
        while not self._over.is_set():
            began = time.monotonic()
            told = state.namenode_status(url(host), deadline_seconds=LOOK_SECONDS)
            with self._lock:
                self.looks += told is not None
                if told is not None and told.state == "active" and told.epoch is not None:
                    self.claims[told.epoch].add(host)
            self._over.wait(max(0.0, EVERY_SECONDS - (time.monotonic() - began)))
