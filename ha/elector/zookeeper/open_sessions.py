"""The open sessions of this process, so that a thread can end all when the event loop hangs."""

import threading
from collections.abc import Callable
from weakref import WeakSet

from ha.elector.zookeeper.client import OnState, Session
from ha.elector.zookeeper.metrics import measured_session
from ha.elector.zookeeper.session_ticket import SessionTicket
from ha.elector.zookeeper.settings import ZooKeeperSettings


class OpenSessions:
    """Builds sessions, and keeps a weak reference to each."""

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
        """Build a session; see ``SessionFactory``."""
        session = measured_session(settings, on_state, on_change, ticket=ticket)
        self._sessions.add(session)
        return session

    def end_all(self) -> None:
        """End all sessions at the server and block for it, in any thread but the event loop's.

        Only for the end of the process: the event loop is not notified.
        """
        # A thread for each: a session that hangs must not delay the release of another's lock.
        ending = [
            threading.Thread(target=session.end_now, daemon=True) for session in self._sessions
        ]
        for one in ending:
            one.start()
        for one in ending:
            one.join()
