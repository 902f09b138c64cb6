"""``nnha security``: an authority of one's own, and the certificates that it signs."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import click

from ha.cli.authority_change import AuthorityChange, NotReady, cluster_of, read_signing
from ha.cli.certificate_report import (
    certificate_in,
    in_lines,
    of_daemons,
    of_folder,
    problems_of,
)
from ha.conf.errors import BadValue, ConfigurationError
from ha.console.command_audit import CommandAudit
from ha.console.exit_codes import FAILED, REFUSED, UNHEALTHY, USAGE
from ha.console.options import configuration, timeout_option
from ha.daemon import event_loop
from ha.security.audit_text import Outcome
from ha.security.certificate_files import (
    CA,
    CA_KEY,
    CERT,
    KEY,
    REQUEST,
    REVOKED,
    Present,
    new_folder,
    replace,
    revocation,
    revoked_lines,
)
from ha.security.certificates import (
    LEAF_DAYS,
    BadCertificate,
    CertificateRequest,
    Leaf,
    Pair,
    fingerprints,
    for_browser,
    issue,
    new_authority,
    new_key,
    now,
    parse,
    request,
    sign,
)
from ha.security.names import BadName, CertifiedName, role_of

if TYPE_CHECKING:
    from ha.cluster.certificates import Held
    from ha.conf.topology import HostPort

AUDIT: Final = "audit.log"
"""In an authority's folder: what was done with it."""
_FOLDER = click.Path(path_type=Path, file_okay=False)
_FILE = click.Path(path_type=Path, dir_okay=False)
_DIR = click.option("--dir", "folder", type=_FOLDER, required=True, help="The authority's folder.")
_OUT = click.option("--out", type=_FOLDER, required=True, help="The new folder of the certificate.")
_HOSTS = click.option(
    "--host", "hosts", multiple=True, help="A host name or address that it answers at; repeat it."
)
_DAYS = click.option("--days", type=float, default=LEAF_DAYS, show_default=True, help="How long.")
_LONG = click.option("--long-lived", is_flag=True, help="Allow more than 90 days.")


_TIMEOUT = timeout_option(10.0)
_ALSO = click.option(
    "--also", multiple=True, metavar="HOST:PORT",
    help="Ask this page too: of a DataNode or a checkpoint service.  May be given again.",
)  # fmt: skip


@click.group()
def security() -> None:
    """Make, renew and revoke the certificates by which daemons prove who they are."""


@security.command()
@_DIR
@click.option("--cluster-id", default="nnha", show_default=True, help="In all its certificates.")
def init(folder: Path, cluster_id: str) -> None:
    """Make an authority: its key and its certificate, for ten years."""
    with _exit_with_one_line(), _audited("init", folder, cluster_id):
        CertifiedName(cluster_id, role_of("admin"), "check")
        made = new_authority(cluster_id, now())
        new_folder(
            folder,
            {CA_KEY: made.key, CA: made.certificate, "cluster-id": f"{cluster_id}\n".encode()},
        )
    click.echo(
        f"{folder}: authority of cluster {cluster_id}, {fingerprints(made.certificate)[0]}\n"
        f"Keep {folder / CA_KEY} off the nodes: whoever has it can be any of them."
    )


@security.command("issue")
@click.argument("role")
@click.argument("name")
@_HOSTS
@_DAYS
@_LONG
@_DIR
@_OUT
def issue_command(
    *,
    role: str, name: str, hosts: tuple[str, ...], days: float, long_lived: bool, folder: Path,
    out: Path,
) -> None:  # fmt: skip
    """Make a key and its certificate for NAME, which is a ROLE."""
    with _exit_with_one_line(), _audited("issue", folder, f"{role}/{name}"):
        wish = _wish(folder, role, name, hosts, days, long_lived=long_lived)
        made = issue(read_signing(folder), wish, now())
        new_folder(out, leaf_files(folder, made))
    _tell(parse(made.certificate), out)


@security.command("request")
@_OUT
def request_command(out: Path) -> None:
    """Make a key here, and a request that the authority signs: so the key never travels."""
    with _exit_with_one_line():
        key = new_key()
        new_folder(out, {KEY: key, REQUEST: request(key)})
    click.echo(
        f"{out / REQUEST} is for nnha security sign; put the certificate at {out / CERT} and the "
        f"authority's {CA} beside it"
    )


@security.command("sign")
@click.argument("asked", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("--role", required=True, help="What it may be.")
@click.option("--name", required=True, help="Who it is.")
@_HOSTS
@_DAYS
@_LONG
@_DIR
@_OUT
def sign_command(
    *,
    asked: Path, role: str, name: str, hosts: tuple[str, ...], days: float, long_lived: bool,
    folder: Path, out: Path,
) -> None:  # fmt: skip
    """Sign a request.  Role, name and hosts are those given here, whatever the request says."""
    with _exit_with_one_line(), _audited("sign", folder, f"{role}/{name}"):
        wish = _wish(folder, role, name, hosts, days, long_lived=long_lived)
        made = sign(read_signing(folder), asked.read_bytes(), wish, now())
        new_folder(out, {CERT: made, CA: (folder / CA).read_bytes()})
    _tell(parse(made), out)


@security.command()
@click.argument("folder", type=_FOLDER, required=False)
@configuration
@_TIMEOUT
@_ALSO
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
def show(
    *,
    folder: Path | None,
    conf_dir: Path | None,
    overrides: tuple[str, ...],
    timeout_seconds: float,
    also: tuple[str, ...],
    output: str,
) -> None:
    """Show the certificate of a FOLDER, and which authorities the folder trusts.

    Without a FOLDER: those of all NameNodes, ZKFCs and JournalNodes, and of --also, as they report
    them. Exits 8 when less than a quarter of a life is left, or one reports none.
    """
    with _exit_with_one_line():
        if folder is None:
            told, well = of_daemons(ask_daemons(conf_dir, overrides, timeout_seconds, also))
        else:
            told, well = of_folder(folder)
    if output == "json":
        click.echo(json.dumps(told if folder is None else told[0]))
    else:
        click.echo("\n\n".join(in_lines(one) for one in told))
    if not well:
        raise SystemExit(UNHEALTHY)


@security.command()
@click.argument("folder", type=_FOLDER)
def check(folder: Path) -> None:
    """Say whether a daemon could use a FOLDER now; exits 8 if not, or not for long."""
    problems = problems_of(folder)
    for problem in problems:
        click.echo(f"{folder}: {problem}")
    if problems:
        raise SystemExit(UNHEALTHY)
    click.echo(f"{folder}: in order")


@security.command()
@_DIR
@click.option("--out", type=_FOLDER, default=None, help="The folder of the certificate to renew.")
@click.option("--ca", "authority", is_flag=True, help="Change the authority instead, in 3 steps.")
@click.option("--step", type=click.IntRange(1, 3), default=None, help="Which, with --ca.")
@click.option(
    "--unchecked", is_flag=True, help="Do not ask the daemons whether they are ready for the step."
)
@configuration
@_TIMEOUT
@_ALSO
@_DAYS
@_LONG
def rotate(  # noqa: PLR0913 - its options
    *,
    folder: Path, out: Path | None, authority: bool, step: int | None, unchecked: bool,
    conf_dir: Path | None, overrides: tuple[str, ...], timeout_seconds: float,
    also: tuple[str, ...], days: float, long_lived: bool,
) -> None:  # fmt: skip
    """Renew a certificate with a new key; or change the authority.

    Daemons take the new files within nnha.security.tls.check-interval, without a restart.  Steps 2
    and 3 are refused while a NameNode, ZKFC or JournalNode of the configuration, or a daemon of
    --also, is not ready.
    """
    if authority == (out is not None) or authority != (step is not None):
        raise click.UsageError("give either --out FOLDER, or --ca with --step 1, 2 or 3")
    if out is not None:
        with _exit_with_one_line(), _audited("rotate", folder, str(out)):
            leaf = parse(certificate_in(out))
            if leaf.name is None:
                raise BadCertificate(leaf.nameless)
            wish = CertificateRequest(leaf.name, leaf.hosts, days, long_lived)
            made = issue(read_signing(folder), wish, now())
            replace(out, leaf_files(folder, made))
            _tell(parse(made.certificate), out)
        return
    number = step or 0
    with _exit_with_one_line(), _audited("rotate --ca", folder, f"step {number}"):
        change = AuthorityChange(folder)
        change.check(number)
        if number > 1 and not unchecked:
            asked = ask_daemons(conf_dir, overrides, timeout_seconds, also)
            change.require_ready(number, asked)
            click.echo(f"ready, by their own word: {', '.join(one.daemon for one in asked)}")
            click.echo(
                "DataNodes and checkpoint services stand in no configuration but their own: none "
                "was asked but those of --also"
            )
        click.echo(change.take(number))


@security.command("pkcs12")
@click.argument("folder", type=_FOLDER)
@click.option("--out", type=_FILE, required=True, help="The new file.")
@click.option(
    "--password-file", type=_FILE, default=None, help="Its first line is the password.  [asked for]"
)
def pkcs12_command(folder: Path, out: Path, password_file: Path | None) -> None:
    """Put the certificate of a FOLDER into one file under a password, as browsers want it.

    The file has the key, the certificate and the authorities. It is for people: the roles operator
    and admin.
    """
    if password_file is None and not sys.stdin.isatty():
        raise click.UsageError(
            "there is no terminal to ask for a password at: --password-file FILE"
        )
    with _exit_with_one_line():
        pair = Pair(certificate_in(folder), (folder / KEY).read_bytes())
        authorities = (folder / CA).read_bytes()
        if out.exists():
            raise Present(f"{out} is there already")
        if password_file is None:
            password = click.prompt("Password", hide_input=True, confirmation_prompt=True)
        else:
            password = password_file.read_text().partition("\n")[0]
        if not password:
            raise BadCertificate(f"{password_file} begins with an empty line; nothing was written")
        replace(out.parent, {out.name: for_browser(pair, authorities, password)})
    ends = f"{parse(pair.certificate).not_after:%Y-%m-%d %H:%M:%S} UTC"
    click.echo(f"{out}: import it into a browser; its certificate ends at {ends}")


@security.command()
@click.argument("what")
@click.option("--dir", "folder", type=_FOLDER, required=True, help="A folder with revoked.txt.")
def revoke(what: str, folder: Path) -> None:
    """Add WHAT, a serial in hex or nnha://CLUSTER/ROLE/NAME, to the list of a folder."""
    with _exit_with_one_line(), _audited("revoke", folder, what):
        word = revocation(what)
        path = folder / REVOKED
        before = path.read_text() if path.exists() else ""
        if word not in revoked_lines(before):
            gap = "" if not before or before.endswith("\n") else "\n"
            replace(folder, {REVOKED: f"{before}{gap}{word}\n".encode()})
    click.echo(
        f"{path} names {word}. Copy it into the folder of every daemon: each closes that one's "
        "connections within its nnha.security.tls.check-interval"
    )


def ask_daemons(
    conf_dir: Path | None, overrides: tuple[str, ...], seconds: float, also: Sequence[str] = ()
) -> Sequence["Held"]:
    """Ask the daemons of a configuration, and those behind ``also``, for their certificates.

    Raises:
        ConfigurationError: it cannot be used, or there is none; or one of ``also`` is no address.
    """
    # Loaded here: making certificates needs no cluster.
    from ha.cluster.certificates import held_by_all
    from ha.conf.configuration import load_configuration
    from ha.console.own_certificate import call_under_certificate

    pages = [_page(one) for one in also]
    conf = load_configuration(conf_dir, overrides)
    call_under_certificate(conf)
    return event_loop.run(held_by_all(conf, seconds, pages))


def _page(value: str) -> "HostPort":
    from ha.conf.keys.units import host_port

    try:
        return host_port()(value)
    except BadValue as bad:
        raise ConfigurationError(f"--also {value!r}: {bad}") from None


def leaf_files(folder: Path, made: Pair) -> dict[str, bytes]:
    """Return the files for the folder of a certificate made by the authority in ``folder``."""
    files = {KEY: made.key, CERT: made.certificate, CA: (folder / CA).read_bytes()}
    if (folder / REVOKED).exists():
        files[REVOKED] = (folder / REVOKED).read_bytes()
    return files


def _wish(
    folder: Path, role: str, name: str, hosts: tuple[str, ...], days: float, *, long_lived: bool
) -> CertificateRequest:
    return CertificateRequest(
        CertifiedName(cluster_of(folder), role_of(role), name), hosts, days, long_lived
    )


def _tell(leaf: Leaf, out: Path) -> None:
    ends = leaf.not_after.replace(microsecond=0) + timedelta(0)
    click.echo(f"{out}: {leaf.uri}, serial {leaf.serial:x}, until {ends:%Y-%m-%d %H:%M:%S} UTC")


@contextmanager
def _audited(command: str, folder: Path, target: str) -> Iterator[None]:
    """Write into the folder what was done with it: the signer has no daemon and no log."""
    audit = CommandAudit(folder / AUDIT)
    name = f"security {command}"
    try:
        yield
    except (Present, BadName, BadCertificate, NotReady, ConfigurationError) as refused:
        if folder.is_dir():
            audit.write(name, Outcome.REFUSED, target, str(refused))
        raise
    except OSError as failure:
        if folder.is_dir():
            audit.write(name, Outcome.FAILED, target, str(failure))
        raise
    audit.write(name, Outcome.DONE, target)


@contextmanager
def _exit_with_one_line() -> Iterator[None]:
    """Turn what goes wrong into one line and an exit code."""
    try:
        yield
    except ConfigurationError as unusable:
        _end(str(unusable), USAGE)
    except (Present, BadName, BadCertificate, NotReady) as refused:
        _end(str(refused), REFUSED)
    except OSError as failure:
        _end(str(failure), FAILED)


def _end(message: str, code: int) -> NoReturn:
    click.echo(f"nnha security: {message}", err=True)
    raise SystemExit(code)
