"""As whom this process calls others by Kerberos, for every client in it; set once at the start."""

import threading
import time
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Final

from ha.conf.own_user import call_as
from ha.record import dataclass, field, replace
from ha.security.caller import Role
from ha.security.kerberos.admission import HOST, ServicePrincipal, is_address
from ha.security.kerberos.auth_to_local import NameRules, NoShortName
from ha.security.sasl import gss
from ha.security.sasl.kerberos import KerberosInitiator
from ha.security.sasl.mechanism import Protection, SaslFailure
from ha.security.sasl.spnego import SpnegoInitiator

RENEWED_AT: Final = 0.8  # of the life of tickets


class NoTickets(SaslFailure):
    """A person has no tickets: no server can be called before the next kinit."""


@dataclass(slots=True)
class OwnKerberos:
    """Tickets, of a keytab or else of kinit, and which principals the servers must have."""

    principal: str | None
    keytab: str | None
    rules: NameRules
    wanted: tuple[Protection, ...]
    services: tuple[ServicePrincipal, ...]
    pattern: str = ""
    data_wanted: tuple[Protection, ...] = ()  # to DataNodes; empty: no handshake there
    data_by_aes: bool = False  # where privacy is agreed on and the DataNode takes the offer
    web: str = ""  # the principal of pages, with _HOST; empty: they are asked without tickets
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _tickets: gss.Credentials | None = None
    _fetched_at: tuple[float, float] = (0.0, 0.0)
    _renewed_after: float = 0.0
    _ended_after: float = 0.0
    _failed: tuple[float, str] = (0.0, "")

    @property
    def user(self) -> str:
        """Our own short name; empty where it is not known, or there is none."""
        try:
            return "" if self.principal is None else self.rules.short_name(self.principal)
        except NoShortName:
            return ""

    def tickets(self) -> gss.Credentials:
        """Return tickets that are good; it may take as long as a KDC takes.

        Raises:
            SaslFailure: there are none; ``str`` says what to do.
        """
        age, tickets = self._age(), self._tickets
        if age >= self._ended_after:
            self._renew(tickets, age)
        elif age >= self._renewed_after:  # a silent KDC must not hold up who has good ones
            self._renewed_after = age + 60.0
            work = (tickets, age)
            with suppress(RuntimeError):  # no room for a thread: in a minute, then
                threading.Thread(target=self._renew, args=work, name="tickets", daemon=True).start()
        assert self._tickets is not None
        return self._tickets

    def _age(self) -> float:
        """Return the seconds since the tickets came, by the clock that says more, if one is set."""
        wall, steady = self._fetched_at
        return max(time.time() - wall, time.monotonic() - steady)

    def _renew(self, old: gss.Credentials | None, age: float) -> None:
        asked_at = time.monotonic()
        with self._lock:
            if self._tickets is not old:
                return  # another one has done it
            if age >= self._ended_after and asked_at <= self._failed[0]:
                raise SaslFailure(self._failed[1])  # while we waited: no KDC is asked in a queue
            try:
                fresh = self._fetch(age)
            except gss.GssError as failure:
                advice = f"check {self.keytab} and the KDC" if self.keytab else "run kinit"
                why = f"{failure}; {advice}"
                if age >= self._ended_after:
                    self._failed = time.monotonic(), f"no Kerberos tickets: {why}"
                    kind = SaslFailure if self.keytab else NoTickets
                    raise kind(self._failed[1]) from failure
                import structlog  # here: a command that asks one question loads it for nothing

                log = structlog.get_logger()
                log.warning("kerberos.not_renewed", principal=self.principal, because=why)
                return
            self._tickets, self._fetched_at = fresh, (time.time(), time.monotonic())
            self._renewed_after, self._ended_after = RENEWED_AT * fresh.seconds, fresh.seconds

    def _fetch(self, age: float) -> gss.Credentials:
        if self.principal is None or self.keytab is None:
            fresh = gss.Credentials.of_person()
            self.principal = fresh.principal
        else:
            fresh = gss.Credentials.of_keytab(self.principal, self.keytab)
        if age + fresh.seconds <= self._ended_after + 1:  # in whole seconds
            raise gss.GssError("no new ones came")  # the library keeps the old ones then
        return fresh

    def initiator(self, role: Role | None, host: str, server: str) -> KerberosInitiator:
        """Return our side towards a server that says it is ``server`` (service/host).

        Raises:
            SaslFailure: it is not who it should be, or we have no tickets.
        """
        known = [one for one in self.services if role is None or role in one.roles]
        for one in known:
            full = f"{server}@{one.text.rpartition('@')[2]}"
            hosts = one.hosts if is_address(host) else frozenset({host.lower()})
            by_pattern = Role.NAMENODE in one.roles and fnmatchcase(full, self.pattern)
            if by_pattern or replace(one, hosts=hosts).is_held_by(full):
                return KerberosInitiator(self.tickets(), full, self.wanted)
        wanted = ", ".join(sorted({one.text for one in known})) or "none that is configured"
        raise SaslFailure(
            f"Server has invalid Kerberos principal: {server}, expecting: {wanted} for {host}"
        )

    def web_initiator(self, host: str) -> SpnegoInitiator:
        """Return our side towards the pages of a host; raise SaslFailure if we have no tickets."""
        return SpnegoInitiator(self.tickets(), self.web.replace(HOST, host.lower()))


_own: OwnKerberos | None = None


def log_in(own: OwnKerberos | None) -> None:
    """Call others as this one from now on."""
    global _own
    _own = own
    call_as("" if own is None else own.user)


def short_name(name: str) -> str:
    """Return the short name of a principal; of others, and without Kerberos, the name itself.

    Raises:
        NoShortName: no rule gives it one.
    """
    return name if _own is None or "@" not in name else _own.rules.short_name(name)


def own_kerberos() -> OwnKerberos | None:
    """Return as whom others are called; None: without a proof by Kerberos."""
    return _own
