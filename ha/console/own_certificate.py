"""Under which certificate a command calls daemons."""

from pathlib import Path

from ha.conf.configuration import Configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys.security import SECURITY_MODE, TLS_DIR
from ha.security.caller import Role
from ha.security.own_tls import act_as, configured

PEOPLE = (Role.ADMIN, Role.OPERATOR)


def call_under_certificate(configuration: Configuration, *roles: Role) -> None:
    """Call others under the certificate of the first of these roles that this user can read.

    A user without one calls in plain: on this machine the kernel proves the caller's identity, and
    a daemon that demands more says so.  Raises ``ConfigurationError`` if one exists that cannot be
    used.
    """
    base = configuration.get(TLS_DIR)
    if base is None:
        return
    wanted = [role for role in roles or PEOPLE if _readable(Path(base) / role)]
    if not wanted:
        return
    from ha.security.tls_files import NoCertificates  # certificates take 13 MB

    try:
        act_as(configured(configuration, *wanted), configuration.get(SECURITY_MODE))
    except NoCertificates as failure:
        raise ConfigurationError(str(failure)) from failure


def _readable(folder: Path) -> bool:
    try:
        (folder / "key.pem").open("rb").close()
    except OSError:
        return False
    return True
