"""The user that this process runs as."""

import getpass
import os


def own_user() -> str:
    """The name of this process's user; where the machine knows none, the user's number.

    In a container the number is often any that the platform gave out, with no line in the password
    file and no USER in the environment.  All our processes there must still agree on one name: the
    NameNode's superuser is who started it, and its controller asks it for a change of role.
    """
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # OSError from Python 3.13 on
        return str(os.getuid())
