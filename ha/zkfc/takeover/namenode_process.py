"""Watches the process of our own NameNode, if it runs on this machine, for its end."""

from collections.abc import Callable

import structlog

from ha.elector.events import Event
from ha.elector.model import Role
from ha.elector.state import ElectorState
from ha.service.model import ProcessIdentity
from ha.zkfc.surroundings.process_watch import Watched
from ha.zkfc.surroundings.surroundings import REAL_WORLD, Surroundings

log = structlog.get_logger()


class NameNodeProcess:
    """Watches the process that reported that it is active in this term.

    If two processes reported so in one term, it is unknown which one serves, and none is watched.
    """

    def __init__(
        self,
        around: Surroundings = REAL_WORLD,
        *,
        on_term_end: Callable[[ProcessIdentity, Watched], None] = lambda _process, watched: (
            watched.close()
        ),
    ) -> None:
        """Pass the process to ``on_term_end``, which must close the watch, when the term ends."""
        self._around = around
        self._on_term_end = on_term_end
        self._identity: ProcessIdentity | None = None
        self._watched: Watched | None = None
        self._ambiguous = False
        self._logged: ProcessIdentity | None = None

    @property
    def watching(self) -> bool:
        """Whether a process on this machine is watched."""
        return self._watched is not None

    def watch(self, process: ProcessIdentity | None) -> None:
        """Watch this process, which reported that it is active under our lock."""
        if process == self._identity or self._ambiguous:
            return
        if process is None or self._identity is not None:
            self.forget()
            self._ambiguous = True
            return
        self._identity, self._watched = process, self._around.watch(process)
        if process != self._logged:
            self._logged = process  # once: without ZooKeeper a term ends with each report
            log.info("zkfc.namenode.watched", pid=process.pid, here=self._watched is not None)

    def observe_step(self, _event: Event, _before: ElectorState, after: ElectorState) -> None:
        """Forget the process when we are not active any more."""
        if after.role is not Role.ACTIVE:
            self.forget()

    def forget(self) -> None:
        """End the watch: the term is over."""
        process, watched = self._identity, self._watched
        self._identity, self._watched, self._ambiguous = None, None, False
        if process is not None and watched is not None:
            self._on_term_end(process, watched)

    def describe_end(self) -> str:
        """Describe the process if it has ended, and when; empty if it runs or that is unknown."""
        one = self._identity
        if one is None or self._watched is None or not self._watched.ended():
            return ""
        seen = self._around.now().isoformat(timespec="milliseconds")
        return f"pid {one.pid}, started at tick {one.started_ticks}, seen ended {seen}"
