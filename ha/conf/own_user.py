"""The user that this process runs as, and the one in whose name it asks."""

import getpass
import os
from typing import Final

HADOOP_USER_NAME: Final = "HADOOP_USER_NAME"
_proven = ""


def call_as(name: str) -> None:
    """Take the short name of our own ticket for our name from now on; empty: there is none."""
    global _proven
    _proven = name


def own_user() -> str:
    """Return the user in whose name this process asks others, and which it calls its own.

    HADOOP_USER_NAME in the environment names another than the machine does, as in every program of
    Hadoop's without Kerberos.  It proves nothing, as no name does there.  With Kerberos our name is
    that of our ticket.
    """
    return _proven or os.environ.get(HADOOP_USER_NAME, "").strip() or system_user()


def system_user() -> str:
    """Return the name of this process's user, or its number if the machine has no name for it.

    In a container the number is often any that the platform gave out, with no line in the password
    file and no USER in the environment.  All our processes there must still agree on one name: the
    NameNode's superuser is the user that started it, and its controller asks it for a change of
    role.
    """
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # OSError from Python 3.13 on
        return str(os.getuid())
