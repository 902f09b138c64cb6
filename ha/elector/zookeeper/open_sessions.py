"""The sessions of this process, so that all can be ended from outside of the event loop."""

import threading
from collections.abc import Callable
from weakref import WeakSet

from ha.elector.zookeeper.client import OnState, Session
from ha.elector.zookeeper.metrics import measured_session
from ha.elector.zookeeper.session_ticket import SessionTicket
from ha.elector.zookeeper.settings import ZooKeeperSettings


class OpenSessions:
    """Opens sessions, as ``Session`` does, and knows those that are in use."""

    def __init__(self) -> None:
        self._sessions: WeakSet[Session] = WeakSet()

    def open(
        self,
        settings: ZooKeeperSettings,
        on_state: OnState,
        on_change: Callable[[bool], None] = lambda _: None,
        *,
        ticket: SessionTicket | None = None,
    ) -> Session:
        """See ``SessionFactory``."""
        session = measured_session(settings, on_state, on_change, ticket=ticket)
        self._sessions.add(session)
        return session

    def end_all(self) -> None:
        """End all of them at the server, and wait for it; from any thread but the event loop's.

        For the end of the process alone: the event loop is not notified.
        """
        # Each in a thread of its own: one that hangs must not keep the lock of another.
        ending = [
            threading.Thread(target=session.end_now, daemon=True) for session in self._sessions
        ]
        for one in ending:
            one.start()
        for one in ending:
            one.join()
