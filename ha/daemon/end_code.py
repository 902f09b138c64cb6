"""The exit code of a start that failed: whether a new start could help, or only a person can."""

import errno
from typing import Final

from ha.daemon.process import UNEXPECTED

ONLY_A_PERSON: Final = 78
"""The units do not start it again; sysexits.h calls it EX_CONFIG."""
_FOR_A_PERSON: Final = frozenset(
    {
        errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR,
        errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG, errno.EADDRNOTAVAIL,
    }
)  # fmt: skip


def end_code(failure: BaseException) -> int:
    """Return ``ONLY_A_PERSON`` where a start would fail in the same way until a person acts.

    What the system has said decides: a folder that is forbidden and an address of another host stay
    so, while a port or a lock may be held by a process that is ending, a full disk may get room,
    and a name may resolve later.  Without a word of the system's it is the contents of a
    configuration or of a directory that cannot be used, and those change by a person's hand alone.
    """
    cause: BaseException | None = failure
    while cause is not None:
        if isinstance(cause, OSError):
            return ONLY_A_PERSON if cause.errno in _FOR_A_PERSON else UNEXPECTED
        cause = cause.__cause__ or cause.__context__
    return ONLY_A_PERSON
