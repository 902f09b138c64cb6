"""What ``nnha security`` says of certificates: of one folder, or of all daemons."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ha.security.certificate_files import CA, CERT, KEY, REVOKED, revoked_lines
from ha.security.certificates import (
    SOON,
    BadCertificate,
    Pair,
    check_match,
    fingerprints,
    now,
    parse,
)
from ha.security.names import BadName

if TYPE_CHECKING:
    from ha.cluster.certificates import Held

Told = tuple[Sequence[Mapping[str, object]], bool]
"""The certificates with what is said of each, and whether all are well."""


def of_folder(folder: Path) -> Told:
    """Describe a folder's certificate, and whether it is good.  Raises OSError, BadCertificate."""
    leaf = parse((folder / CERT).read_bytes())
    told = {
        "name": leaf.uri or None,
        "hosts": list(leaf.hosts),
        "serial": f"{leaf.serial:x}",
        "not_before": leaf.not_before.isoformat(),
        "not_after": leaf.not_after.isoformat(),
        "fingerprint": leaf.fingerprint,
        "trusts": list(fingerprints((folder / CA).read_bytes())),
    }
    if not leaf.uri:
        told["why"] = leaf.nameless
    return [told], leaf.left(now()) >= SOON


def of_daemons(daemons: Sequence["Held"]) -> Told:
    """Describe the certificates as the daemons report them, and whether all of them are good."""
    told: list[Mapping[str, object]] = []
    for one in daemons:
        if one.error:
            told.append({"daemon": one.daemon, "mode": one.mode or None, "error": one.error})
            continue
        told.append(
            {
                "daemon": one.daemon, "mode": one.mode, "name": one.name,
                "not_after": one.not_after, "signed_by": one.signed_by,
                "trusts": list(one.trusts), "ending": one.ending or None,
            }
        )  # fmt: skip
    return told, all(not one.error and not one.ending for one in daemons)


def in_lines(told: Mapping[str, object]) -> str:
    """Format one certificate as text for people, one field per line."""
    lines = []
    for key, value in told.items():
        if value not in (None, ""):
            shown = ", ".join(value) if isinstance(value, list) else value
            lines.append(f"{key.replace('_', ' '):12} {shown}")
    return "\n".join(lines)


def problems_of(folder: Path) -> list[str]:
    """Return why a daemon could not use a folder now, or not for long."""
    try:
        pair = Pair(certificate_in(folder), (folder / KEY).read_bytes())
        bundle = (folder / CA).read_bytes()
        check_match(pair, bundle)
        leaf = parse(pair.certificate)
        if (folder / REVOKED).exists():
            revoked_lines((folder / REVOKED).read_text())
    except (OSError, BadCertificate, BadName) as failure:
        return [str(failure)]
    found = [] if leaf.name is not None else [leaf.nameless]
    present = now()
    if present < leaf.not_before:
        found.append(
            f"not yet valid: it begins at {leaf.not_before:%Y-%m-%d %H:%M:%S} UTC, and this "
            f"machine's clock says {present:%Y-%m-%d %H:%M:%S} UTC"
        )
    elif ending := leaf.ending(present):
        found.append(f"it {ending}")
    if (folder / KEY).stat().st_mode & 0o077:
        found.append(f"other users of this machine may read {KEY}: chmod 600 {folder / KEY}")
    return found


def certificate_in(folder: Path) -> bytes:
    """Return the certificate in a folder.  Raises ``BadCertificate``: there is none."""
    try:
        return (folder / CERT).read_bytes()
    except FileNotFoundError:
        below = sorted(str(one.parent) for one in folder.glob(f"*/{CERT}"))
    if below:
        raise BadCertificate(
            f"{folder} has no {CERT}; it is a folder of folders, as nnha.security.tls.dir → give "
            f"one of them: {', '.join(below)}"
        )
    raise BadCertificate(f"there is no {folder / CERT} → nnha security issue makes a new one")
