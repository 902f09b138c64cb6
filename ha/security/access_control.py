"""A daemon's control of access: who calls it, whether they may, and what is written of it.

Every face asks it before a handler runs: ``caller`` once for a connection, ``refusal`` for each
call.  What it decides is ``ha.security.decision``.
"""

import os
import threading
import time
from collections.abc import Callable
from typing import Final

import structlog
from prometheus_client import Counter

from ha.conf.keys.security import Mode
from ha.security.audit import Audit
from ha.security.audit_rate import RefusalRate
from ha.security.audit_text import Entry, escaped
from ha.security.caller import Caller, Method, Role, local_caller, unproven
from ha.security.decision import Action, Allowed, Denied, Policy, claim, decide
from ha.security.peer_uid import End, end_of, is_here, still_open, uid_of
from ha.security.user_names import UserNames, local_uid

log = structlog.get_logger()

UNAUTHENTICATED = Counter(
    "nnha_auth_unauthenticated",
    "Calls that were let in although nothing proves who calls (nnha.security.mode=permissive)",
    ["face", "method"],
)
TOLD_EVERY_SECONDS: Final = 3600.0
MOST_TOLD: Final = 1024
MOST_USUAL: Final = 4096
"""Decisions that are kept: of nothing else, and nothing is written of them."""

_Asked = tuple[frozenset[Role], Method, str, str]
"""All of a caller and an action that an ordinary decision depends on, for a policy stays."""


class AccessControl:
    """The one who is asked at every door of a daemon."""

    def __init__(
        self,
        mode: Mode,
        *,
        target: str,
        audit: Audit,
        own_uid: int | None = None,
        kernel_tells: bool = True,
        uid_of: Callable[[End, End], int | None] = uid_of,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``target`` names the daemon in audit lines.

        ``kernel_tells`` is False where a sandbox keeps the kernel from telling who calls.
        """
        self._kernel_tells = kernel_tells
        self.policy = Policy(mode, os.geteuid() if own_uid is None else own_uid)
        self._target = target
        self._audit = audit
        self._uid_of = uid_of
        self._clock = clock
        self._names = UserNames()
        self._rate = RefusalRate()
        self._lock = threading.Lock()  # write lanes have threads of their own
        self._told: dict[str, float] = {}
        self._usual: set[_Asked] = set()

    # Who calls.

    def caller(self, peer: object, own: object, connection: object) -> Caller:
        """Whoever is at the other end of a socket, by the names of its ends.

        Its name is still to be found where it ``lacks_name``.
        """
        there, here = end_of(peer), end_of(own)
        if there is None or here is None:
            return unproven("an unknown address")
        found = self.caller_of(there, here)
        if not found.proven or still_open(connection):
            return found
        return unproven(str(there), provable=True)

    def caller_of(self, peer: End, own: End) -> Caller:
        """Whoever is at the other end of a connection of which only the ends are known."""
        if self.policy.mode is Mode.INSECURE or not is_here(peer, own):
            return unproven(str(peer))
        uid = self._uid_of(peer, own)
        if uid is None:
            return unproven(str(peer), provable=self._kernel_tells)
        found = local_caller(uid, self.policy.own_uid, str(peer))
        return found.named(self._names.known(uid))

    def lacks_name(self, caller: Caller) -> bool:
        """Whether a user must be named before anything can be said of what it claims to be."""
        return caller.proven and not caller.trusted and not caller.name

    async def named(self, caller: Caller) -> Caller:
        """The caller with its name."""
        return caller if caller.uid is None else caller.named(await self._names.find(caller.uid))

    def claimed(
        self, caller: Caller, user: str, real_user: str | None, face: str
    ) -> Caller | Denied:
        """The caller under the name that it gives itself; a refusal is written down."""
        found = claim(self.policy, caller, user, real_user, None)
        if not isinstance(found, Denied):
            return found
        if not found.unproven:
            other = user if user != caller.name else real_user or user
            known = claim(self.policy, caller, user, real_user, local_uid(other))
            found = known if isinstance(known, Denied) else found
        self._refused(caller, "rpc", Action(face, "connect"), found.reason, said=user)
        return found

    # What they may do.

    def refusal(
        self, caller: Caller, proto: str, face: str, name: str, context: str = ""
    ) -> Denied | None:
        """None where the caller may do that; it is written down as the table says."""
        asked = (caller.roles, caller.method, face, name)
        if asked in self._usual:
            return None
        action = Action(face, name)
        decided = decide(self.policy, caller, action)
        if isinstance(decided, Denied):
            self._refused(caller, proto, action, decided.reason, context=context)
            return decided
        self._keep(asked, decided)
        if decided.unproven:
            self._let_in(caller, action)
        if decided.audited:
            self._audit.write(
                Entry(True, caller, proto, face, name, self._target, context=context)  # noqa: FBT003 - an entry's first field
            )
        return None

    def may(self, caller: Caller, face: str, name: str) -> bool:
        """The decision alone, with nothing written; from any thread."""
        asked = (caller.roles, caller.method, face, name)
        if asked in self._usual:
            return True
        decided = decide(self.policy, caller, Action(face, name))
        if isinstance(decided, Denied):
            return False
        self._keep(asked, decided)
        return True

    def refused_by_handler(
        self, caller: Caller, face: str, name: str, reason: str, context: str
    ) -> None:
        """A handler has a rule of its own, for instance a list of administrators."""
        self._refused(caller, "rpc", Action(face, name), reason, context=context)

    # Our own.

    def _keep(self, asked: _Asked, decided: Allowed) -> None:
        if not (decided.audited or decided.unproven) and len(self._usual) < MOST_USUAL:
            self._usual.add(asked)

    def _refused(
        self,
        caller: Caller,
        proto: str,
        action: Action,
        reason: str,
        *,
        context: str = "",
        said: str = "",
    ) -> None:
        with self._lock:
            alike = self._rate.admit((action.face, action.name, caller.host), self._clock())
            unsaid = 0 if alike is None else self._rate.take_unsaid()
        if alike is None:
            return
        if said and said != caller.name:
            reason = f"{reason} [it said that it is {said}]"
        self._audit.write(
            Entry(
                False, caller, proto, action.face, action.name, self._target, reason, context,  # noqa: FBT003 - an entry's first field
                alike,
            )
        )  # fmt: skip
        if unsaid:
            log.warning("audit.refusals_not_written", count=unsaid)

    def _let_in(self, caller: Caller, action: Action) -> None:
        UNAUTHENTICATED.labels(action.face, action.name).inc()
        with self._lock:
            now = self._clock()
            if now < self._told.get(caller.host, 0.0):
                return
            if len(self._told) >= MOST_TOLD:
                self._told.clear()
            self._told[caller.host] = now + TOLD_EVERY_SECONDS
        log.warning(
            "security.unproven_caller",
            host=caller.host, says=escaped(caller.name), face=action.face, method=action.name,
        )  # fmt: skip
