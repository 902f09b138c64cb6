"""A daemon's control of access: the caller, whether it may call, and what is written of it.

Every face asks it before a handler runs: ``caller`` once for a connection, ``refusal`` for each
call.  What it decides is ``ha.security.decision``.
"""

import os
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import structlog
from prometheus_client import Counter

from ha.conf.keys.security import Mode
from ha.security.audit import Audit, Later, call_later
from ha.security.audit_rate import QUIET_SECONDS, RefusalRate, Share
from ha.security.audit_text import Entry, Outcome, escape
from ha.security.caller import Caller, Method, Role, local_caller, unproven
from ha.security.decision import Action, Allowed, Denied, Policy, claim, decide
from ha.security.peer_uid import End, end_of, is_here, still_open, uid_of
from ha.security.rights import Right
from ha.security.user_names import UserNames, local_uid

if TYPE_CHECKING:
    from ha.security.kerberos.admission import Admission
    from ha.security.page_store import PageStore
    from ha.security.sasl.way import Way
    from ha.security.tls_files import TlsFiles

log = structlog.get_logger()

UNAUTHENTICATED = Counter(
    "nnha_auth_unauthenticated",
    "Calls that were let in although nothing proves who calls (nnha.security.mode=permissive)",
    ["face", "method"],
)
NOT_WRITTEN = Counter(
    "nnha_audit_refusals_not_written",
    "Refused calls, and a client's calls that are audited, without an audit line: too many of "
    "their caller, or alike",
)
TOLD_EVERY_SECONDS: Final = 3600.0
MOST_TOLD: Final = 1024
MAX_FACE: Final = 100
"""A stranger's word, which is kept for a while."""
MOST_USUAL: Final = 4096
"""Decisions that are kept."""
_NO_RIGHTS: Final[Mapping[str, Right]] = {}


class AccessControl:
    """The one who is asked at every door of a daemon."""

    def __init__(  # noqa: PLR0913 - what each daemon knows of itself
        self,
        mode: Mode,
        *,
        target: str,
        audit: Audit,
        own_uid: int | None = None,
        kernel_reports_uids: bool = True,
        tls: "TlsFiles | None" = None,
        hosts: Sequence[str] = (),
        simple_clients: bool = False,
        namenodes: frozenset[str] | None = None,
        uid_of: Callable[[End, End], int | None] = uid_of,
        clock: Callable[[], float] = time.monotonic,
        later: Later = call_later,
    ) -> None:
        """Name the daemon ``target`` in audit lines.

        ``hosts``: further names under which its pages may be asked.
        ``kernel_reports_uids`` is False where a sandbox keeps the kernel from identifying callers.
        ``tls``: this daemon's certificates, with which its listeners take TLS.  The rest as in
        ``Policy``.
        """
        self._kernel_tells = kernel_reports_uids
        self.tls = tls
        self.hosts = tuple(hosts)
        self.policy = Policy(
            mode,
            os.geteuid() if own_uid is None else own_uid,
            certificates=tls is not None,
            simple_clients=simple_clients,
            namenodes=namenodes,
            own_name=None if tls is None else tls.material.name.name,
        )
        self.ways: tuple[Way, ...] = ()
        """How callers of Hadoop RPC may prove themselves; empty: they are not asked to."""
        self.web_way: Way | None = None
        """How requests for pages may; None: tickets are nothing to them."""
        self.https: TlsFiles | PageStore | None = None
        """The certificate of pages that are served by HTTPS alone; None: they are not."""
        self.admission: Admission | None = None
        """Access lists, proxy users and Kerberos names; None: there are none."""
        self._target = target
        self._audit = audit
        self._uid_of = uid_of
        self._clock = clock
        self._names = UserNames()
        self._later = later
        self._rates = {proven: RefusalRate() for proven in (True, False)}
        self._will_say = False
        self._lock = threading.Lock()  # write lanes have threads of their own
        self._told: dict[str, float] = {}
        self._usual: set[tuple[frozenset[Role], str, str]] = set()

    # The caller.

    def caller(
        self, peer: object, own: object, connection: object, secured: object = None
    ) -> Caller:
        """Return the caller at the other end of a socket, by the names of its ends.

        ``secured``: the ssl object of a connection over TLS.  The name of a caller that the kernel
        has identified is still to be found where it ``lacks_name``.
        """
        there, here = end_of(peer), end_of(own)
        if there is None or here is None:
            return unproven("an unknown address")
        if isinstance(secured, ssl.SSLObject | ssl.SSLSocket):
            shown = secured.getpeercert(binary_form=True)
            if shown is not None:
                return self.certified(shown, str(there))
        found = self.caller_of(there, here)
        if not found.proven or still_open(connection):
            return found
        return unproven(str(there), provable=True)

    def certified(self, shown: bytes | None, address: str) -> Caller:
        """Return the caller that has shown this certificate, in DER or PEM."""
        return unproven(address) if self.tls is None else self.tls.caller(shown, address)

    def caller_of(self, peer: End, own: End) -> Caller:
        """Return the caller of a connection of which only the ends are known."""
        if self.policy.mode is Mode.INSECURE or not is_here(peer, own):
            return unproven(str(peer))
        uid = self._uid_of(peer, own)
        if uid is None:
            return unproven(str(peer), provable=self._kernel_tells)
        found = local_caller(uid, self.policy.own_uid, str(peer))
        if self.policy.demands_certificates:
            found = replace(found, roles=frozenset({Role.CLIENT}))
        return found.named(self._names.known(uid))

    def lacks_name(self, caller: Caller) -> bool:
        """Return whether a user must be named before its claims can be judged."""
        return caller.proven and not caller.trusted and not caller.name

    async def named(self, caller: Caller) -> Caller:
        """Return the caller with its name."""
        return caller if caller.uid is None else caller.named(await self._names.find(caller.uid))

    def claimed(
        self, caller: Caller, user: str, real_user: str | None, face: str
    ) -> Caller | Denied:
        """Return the caller under the name that it gives itself; write a refusal down."""
        found = claim(self.policy, caller, user, real_user, None, face)
        if not isinstance(found, Denied):
            return found
        if caller.method is Method.PEER_UID:
            other = user if user != caller.name else real_user or user
            known = claim(self.policy, caller, user, real_user, local_uid(other), face)
            found = known if isinstance(known, Denied) else found
        self._refused(caller, "rpc", Action(face, "connect"), found.reason, said=user)
        return found

    @property
    def takes_simple(self) -> bool:
        """Return whether callers of Hadoop RPC need no ticket."""
        tickets = any(way.method is Method.KERBEROS for way in self.ways)
        return not tickets or self.policy.mode is Mode.PERMISSIVE

    def without_kernel(self, caller: Caller) -> Caller:
        """Return the caller as Hadoop RPC knows it.

        Where tickets are asked for, the kernel's word about a local caller proves nothing.
        """
        if self.takes_simple or caller.method not in (Method.SIMPLE, Method.PEER_UID):
            return caller
        return unproven(caller.address)

    async def admitted(self, caller: Caller, user: str, protocol: str) -> Caller | Denied:
        """Return the caller as the operator's lists let it go on; write a refusal down."""
        if self.admission is None:
            return caller
        found = await self.admission.admit(caller, user, protocol)
        if isinstance(found, Denied):
            face = protocol.rpartition(".")[2][:MAX_FACE]
            self._refused(caller, "rpc", Action(face, "connect"), found.reason, said=user)
        return found

    def not_proven(self, caller: Caller, method: Method, reason: str, proto: str = "rpc") -> None:
        """Write down that a caller has tried to prove itself, and why that was nothing."""
        self._refused(caller, proto, Action("sasl", method.value), reason)

    # What they may do.

    def refusal(
        self, caller: Caller, proto: str, face: str, name: str, context: str = ""
    ) -> Denied | None:
        """Return None where the caller may do that; write it down as the table says."""
        if self._is_usual(caller, face, name):
            return None
        action = Action(face, name)
        decided = decide(self.policy, caller, action)
        if isinstance(decided, Denied):
            self._refused(caller, proto, action, decided.reason, context=context)
            return decided
        self._keep(caller, action, decided)
        if decided.unproven:
            self._let_in(caller, action)
        if decided.audited:
            self._granted(
                Entry(Outcome.GRANTED, caller, proto, face, name, self._target, context=context)
            )
        return None

    def ended(
        self,
        caller: Caller,
        proto: str,
        face: str,
        name: str,
        outcome: Outcome,
        reason: str = "",
        context: str = "",
    ) -> None:
        """Write down how an allowed action has ended, where the table says so."""
        if self.audits(face, name):
            self._granted(Entry(outcome, caller, proto, face, name, self._target, reason, context))

    def audits(self, face: str, name: str) -> bool:
        """Return whether an action is written down also when it is allowed."""
        right = self.policy.rights.get(face, _NO_RIGHTS).get(name)
        return right is not None and right.audited

    def may(self, caller: Caller, face: str, name: str) -> bool:
        """Return the decision alone, and write nothing; from any thread."""
        if self._is_usual(caller, face, name):
            return True
        action = Action(face, name)
        decided = decide(self.policy, caller, action)
        if isinstance(decided, Denied):
            return False
        self._keep(caller, action, decided)
        return True

    def refused_by_handler(
        self, caller: Caller, face: str, name: str, reason: str, context: str
    ) -> None:
        """Write down a refusal by a handler's own rule, for instance a list of administrators."""
        self._refused(caller, "rpc", Action(face, name), reason, context=context)

    # Our own.

    def _is_usual(self, caller: Caller, face: str, name: str) -> bool:
        """Return whether a like caller was let do that before, and nothing is written of it.

        Of local users alone: for them a decision depends on their roles and the action only.
        """
        return (
            caller.method is Method.PEER_UID
            and not caller.barred
            and (caller.roles, face, name) in self._usual
        )

    def _keep(self, caller: Caller, action: Action, decided: Allowed) -> None:
        plain = not (decided.audited or decided.unproven)
        if plain and caller.method is Method.PEER_UID and len(self._usual) < MOST_USUAL:
            self._usual.add((caller.roles, action.face, action.name))

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
        share = Share.CONTROL if self.audits(action.face, action.name) else Share.COMMON
        alike = self._admit(caller, self._kind(action), share)
        if alike is None:
            return
        if said and said != caller.name:
            reason = f"{reason} [it said that it is {said}]"
        self._audit.write(
            Entry(
                Outcome.REFUSED, caller, proto, action.face, action.name, self._target, reason,
                context, alike,
            )
        )  # fmt: skip

    def _granted(self, entry: Entry) -> None:
        """Write down what was allowed; a mere client's as far as its lines go."""
        is_client = entry.caller.roles <= {Role.CLIENT}
        if not is_client or self._admit(entry.caller, None, Share.GRANTED) is not None:
            self._audit.write(entry)

    def _admit(self, caller: Caller, kind: Action | None, share: Share) -> int | None:
        """Return how many like this one were not written before it; None: nor is this one."""
        with self._lock:
            alike = self._rates[caller.proven].admit(caller.owner, kind, self._clock(), share)
            will_say, self._will_say = self._will_say, self._will_say or alike is None
        if alike is None:
            NOT_WRITTEN.inc()
            if not will_say:
                self._later(QUIET_SECONDS, self._say_unsaid)
        return alike

    def _kind(self, action: Action) -> Action:
        """Return the action if there is such a one: else its names are a stranger's words."""
        known = self.policy.rights.get(action.face)
        if known is not None and (action.name in known or action.name == "connect"):
            return action
        return Action("other" if known is None else action.face, "other")

    def _say_unsaid(self) -> None:
        """Log how many refusals no line has counted; again later if more may come to be said."""
        with self._lock:
            now = self._clock()
            unsaid = sum(rate.take_unsaid(now) for rate in self._rates.values())
            self._will_say = any(rate.is_silent for rate in self._rates.values())
            will_say = self._will_say
        if will_say:
            self._later(QUIET_SECONDS, self._say_unsaid)
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
            host=caller.host, says=escape(caller.name), face=action.face, method=action.name,
        )  # fmt: skip
