"""Which groups a user belongs to, as this machine knows them (Hadoop's default mapping)."""

import grp
import pwd
from collections.abc import Callable, Mapping
from types import MappingProxyType

GroupsOf = Callable[[str], frozenset[str]]

MAX_REMEMBERED = 10_000


class SystemGroups:
    """Asks the operating system once per user and remembers the answer.

    Hadoop forgets after five minutes (``hadoop.security.groups.cache.secs``); here a change of
    membership needs ``forget``, since the lookup may block and is not repeated behind our back.
    ``overrides`` has the groups of users about whom the operating system is not asked.
    """

    def __init__(self, overrides: Mapping[str, frozenset[str]] = MappingProxyType({})) -> None:
        self._overrides = overrides
        self._known: dict[str, frozenset[str]] = {}

    def __call__(self, user: str) -> frozenset[str]:
        """The groups of a user; none if the machine does not know the user."""
        if user in self._overrides:
            return self._overrides[user]
        groups = self._known.get(user)
        if groups is None:
            groups = _ask(user)
            if len(self._known) >= MAX_REMEMBERED:
                self._known.clear()
            self._known[user] = groups
        return groups

    def forget(self) -> None:
        """Ask again from now on."""
        self._known.clear()


def _ask(user: str) -> frozenset[str]:
    groups = {entry.gr_name for entry in grp.getgrall() if user in entry.gr_mem}
    try:
        groups.add(grp.getgrgid(pwd.getpwnam(user).pw_gid).gr_name)
    except KeyError:
        return frozenset(groups)
    return frozenset(groups)
