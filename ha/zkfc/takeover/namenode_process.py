"""Watches the process of our own NameNode, if it runs on this machine, and notices its end."""

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
    """Watches the process that served as active in this term.

    Only a process that itself said that it is active is watched.  If two processes said so in one
    term, it cannot be determined which of them still serves, and nothing is known.
    """

    def __init__(
        self,
        around: Surroundings = REAL_WORLD,
        *,
        left: Callable[[ProcessIdentity, Watched], None] = lambda _process, watched: (
            watched.close()
        ),
    ) -> None:
        """Hand the process of a term that is over to ``left``, which closes the watch of it."""
        self._around = around
        self._left = left
        self._identity: ProcessIdentity | None = None
        self._watched: Watched | None = None
        self._spoilt = False
        self._logged: ProcessIdentity | None = None

    @property
    def watching(self) -> bool:
        """Whether the process is on this machine, and its end will be seen."""
        return self._watched is not None

    def serves(self, process: ProcessIdentity | None) -> None:
        """Watch the process that said that it is active, under our lock."""
        if process == self._identity or self._spoilt:
            return
        if process is None or self._identity is not None:
            self.forget()
            self._spoilt = True
            return
        self._identity, self._watched = process, self._around.watch(process)
        if process != self._logged:
            self._logged = process  # without ZooKeeper a term ends with each look
            log.info("zkfc.namenode.watched", pid=process.pid, here=self._watched is not None)

    def stepped(self, _event: Event, _before: ElectorState, after: ElectorState) -> None:
        """Forget the process where the election says that we are not active."""
        if after.role is not Role.ACTIVE:
            self.forget()

    def forget(self) -> None:
        """Forget the process: the term is over."""
        process, watched = self._identity, self._watched
        self._identity, self._watched, self._spoilt = None, None, False
        if process is not None and watched is not None:
            self._left(process, watched)

    def ended(self) -> str:
        """Return which process has ended, and when; empty while it runs, or if that is unknown."""
        one = self._identity
        if one is None or self._watched is None or not self._watched.ended():
            return ""
        seen = self._around.now().isoformat(timespec="milliseconds")
        return f"pid {one.pid}, started at tick {one.started_ticks}, seen ended {seen}"
