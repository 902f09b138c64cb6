"""What a proven caller may be: its roles, for whom it acts, which protocols are closed to it."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Final

from ha.record import dataclass, field, replace
from ha.security.caller import Caller, Method, Role
from ha.security.decision import Denied
from ha.security.kerberos.auth_to_local import NameRules, NoShortName
from ha.security.lists.access_list import NOBODY, AccessList, GroupsOf, groups_here
from ha.security.lists.proxy_users import impersonation_refusal
from ha.security.lists.service_acls import KEYS, acl_refusal

HOST: Final = "_HOST"


@dataclass(frozen=True, slots=True)
class ServicePrincipal:
    """A principal of the configuration, and what its holders are.

    ``hosts``: what _HOST may stand for; None: any host, where the configuration names none.
    """

    text: str
    hosts: frozenset[str] | None
    roles: frozenset[Role]

    def is_held_by(self, principal: str) -> bool:
        """Return whether this is a principal of the service."""
        before, placeholder, after = self.text.partition(HOST)
        if not placeholder:
            return principal == self.text
        host = principal.removeprefix(before).removesuffix(after)
        if f"{before}{host}{after}" != principal or not host or "/" in host or "@" in host:
            return False
        return self.hosts is None or host in self.hosts


@dataclass(frozen=True, slots=True)
class Admission:
    """The lists of one daemon; ``policy`` None: hadoop.security.authorization is off.

    ``own``: the daemon's own short name, which is the superuser's.  ``settings``: for proxy users.
    """

    rules: NameRules | None = None
    services: tuple[ServicePrincipal, ...] = ()
    own: str = ""
    administrators: AccessList = NOBODY
    settings: Mapping[str, str] = field(default_factory=dict)
    policy: Mapping[str, str] | None = None
    groups_of: GroupsOf = groups_here

    def user_of(self, principal: str) -> tuple[str, str]:
        """Return the short name of a ticket's principal; raise NoShortName."""
        assert self.rules is not None
        return self.rules.short_name(principal), ""

    async def admit(self, caller: Caller, user: str, protocol: str) -> Caller | Denied:
        """Return the caller as it may go on, for the user that its context names."""
        groups_of = cache(lambda user: asyncio.ensure_future(self.groups_of(user)))
        found = await self._acting(caller, user, groups_of)
        if isinstance(found, Denied) or self.policy is None:
            return found
        refusals = {
            name: await acl_refusal(
                self.policy, found.in_full, found.name, name, found.host, groups_of
            )
            for name in (protocol, *KEYS)
        }
        if (refusal := refusals[protocol]) is not None:
            return Denied(refusal, by_list=True)
        return replace(found, barred=frozenset(name for name in refusals if refusals[name]))

    async def _acting(self, caller: Caller, user: str, groups_of: GroupsOf) -> Caller | Denied:
        if caller.method not in (Method.KERBEROS, Method.TOKEN):
            return caller
        if user in ("", caller.name, caller.principal):
            return replace(caller, roles=await self._roles(caller, groups_of))
        if caller.method is Method.TOKEN:
            return Denied(
                f"Authenticated user ({caller.in_full}) doesn't match what the client claims to be "
                f"({user})"
            )
        try:
            effective = user if {"@", "/"}.isdisjoint(user) else self.user_of(user)[0]
        except NoShortName as failure:
            return Denied(str(failure), by_list=True)
        real = (caller.name, caller.principal)
        refusal = await impersonation_refusal(
            self.settings, real, effective, caller.host, groups_of
        )
        if refusal is not None:
            return Denied(refusal, by_list=True)
        return replace(caller, name=effective, real=caller.name, roles=frozenset({Role.CLIENT}))

    async def _roles(self, caller: Caller, groups_of: GroupsOf) -> frozenset[Role]:
        client = frozenset({Role.CLIENT})
        if caller.method is not Method.KERBEROS:
            return client
        held = [one.roles for one in self.services if one.is_held_by(caller.principal)]
        with suppress(TimeoutError):  # it is no administrator then, and may be all else
            if caller.name == self.own or await self.administrators.admits(caller.name, groups_of):
                held.append(frozenset({Role.ADMIN}))
        return client.union(*held)


def is_address(host: str) -> bool:
    """Return whether a host is an address, which is no part of a principal."""
    return ":" in host or host.replace(".", "").isdigit()
