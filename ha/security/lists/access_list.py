"""Lists of users and groups, as Hadoop writes them.

See docs/reference/zkfc.md#access.
"""

import asyncio
import grp
import os
import pwd
from collections.abc import Awaitable, Callable
from typing import Final

from ha.record import dataclass

GROUPS_DEADLINE_SECONDS: Final = 5.0

GroupsOf = Callable[[str], Awaitable[frozenset[str]]]
"""The groups of a user, as this machine knows them."""


@dataclass(frozen=True, slots=True)
class AccessList:
    """Users and groups; or everybody."""

    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    everybody: bool = False

    @classmethod
    def parse(cls, text: str) -> "AccessList":
        """Read ``user,user group,group``; a ``*`` is everybody, an empty text admits no user."""
        users, _, groups = text.partition(" ")
        return cls.of(users, groups)

    @classmethod
    def of(cls, users: str, groups: str) -> "AccessList":
        """Read users and groups of texts of their own."""
        if "*" in (users.strip(), groups.strip()):
            return cls(everybody=True)
        return cls(_names(users), _names(groups))

    async def admits(self, user: str, groups_of: GroupsOf) -> bool:
        """Return whether the user is one of them; look groups up only where they decide."""
        if self.everybody or user in self.users:
            return True
        return bool(self.groups) and not self.groups.isdisjoint(await groups_of(user))


NOBODY: Final = AccessList()


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())


async def groups_here(user: str) -> frozenset[str]:
    """Return the groups of a user of this machine; none where it knows no such user.

    Raises TimeoutError where it gives no answer: a list that keeps a group out must not be passed.
    """
    try:
        async with asyncio.timeout(GROUPS_DEADLINE_SECONDS):
            # A directory server may be asked, and may be slow.
            return await asyncio.to_thread(system_groups, user)
    except TimeoutError as late:
        import structlog  # here: a command that asks one question loads it for nothing

        structlog.get_logger().warning(
            "groups.unanswered", user=user, seconds=GROUPS_DEADLINE_SECONDS
        )
        raise TimeoutError(f"the groups of {user} are not known: no answer in time") from late


def system_groups(user: str) -> frozenset[str]:
    """Return the groups of a user of this machine, as ``id -Gn`` prints them; none of a stranger.

    A directory service answers for one user also where it does not list all groups (SSSD's
    ``enumerate = false``).  It may take seconds.
    """
    try:
        numbers = os.getgrouplist(user, pwd.getpwnam(user).pw_gid)
    except KeyError:
        return frozenset()
    names = set()
    for number in numbers:
        try:
            names.add(grp.getgrgid(number).gr_name)
        except KeyError:
            continue  # a group without a name
    return frozenset(names)
