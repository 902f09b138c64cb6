"""Under which certificate a command calls daemons."""

from pathlib import Path

import click

from ha.conf.configuration import Configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys.security import AUTHENTICATION, SECURITY_MODE, TLS_DIR
from ha.security.caller import Role
from ha.security.own_tls import act_as, ask_pages_as_configured, configured

PEOPLE = (Role.ADMIN, Role.OPERATOR)


def call_under_certificate(configuration: Configuration, *roles: Role) -> None:
    """Call others under the certificate of the first of these roles that this user can read.

    A user without one calls in plain: on this machine the kernel proves the caller's identity, and
    a daemon that demands more says so.  Raises ``ConfigurationError`` if one exists that cannot be
    used, or that is not valid now by this machine's clock.
    """
    if configuration.get(AUTHENTICATION).lower() == "kerberos":
        _call_with_tickets(configuration)
    try:
        ask_pages_as_configured(configuration)
    except ConfigurationError as failure:
        click.echo(f"warning: {failure}", err=True)  # few commands fetch segments
    base = configuration.get(TLS_DIR)
    if base is None:
        return
    wanted = [role for role in roles or PEOPLE if _readable(Path(base) / role)]
    if not wanted:
        return
    from ha.security.tls_files import NoCertificates  # certificates take 13 MB

    try:
        files = configured(configuration, *wanted)
    except NoCertificates as failure:
        raise ConfigurationError(str(failure)) from failure
    # No daemon would accept it, and each would seem to be gone.
    if files is not None and (why := files.invalid()):
        raise ConfigurationError(why)
    act_as(files, configuration.get(SECURITY_MODE))


def _call_with_tickets(configuration: Configuration) -> None:
    from ha.security.kerberos.own import log_in
    from ha.security.kerberos.settings import login, name_rules
    from ha.security.sasl.mechanism import SaslFailure

    own = login(configuration, name_rules(configuration))
    try:
        own.tickets()
    except SaslFailure as failure:
        click.echo(f"warning: {failure}", err=True)  # pages need none
    log_in(own)


def _readable(folder: Path) -> bool:
    path = folder / "key.pem"
    try:
        path.open("rb").close()
    except FileNotFoundError:
        return False
    except OSError as failure:
        click.echo(f"warning: {path}: {failure.strerror}; calling without a certificate", err=True)
        return False
    return True
