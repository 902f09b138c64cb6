"""What ``nnha security show`` reports of certificates: of one folder, or of all daemons."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ha.security.certificate_files import CA, CERT
from ha.security.certificates import SOON, fingerprints, now, parse

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
