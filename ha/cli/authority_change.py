"""The change of an authority in three steps: which daemons are ready for each, and what it does.

A daemon that does not trust the new authority yet would refuse all others once they have new
certificates; one that still has an old certificate would be refused once the old one is gone.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ha.record import dataclass
from ha.security import certificates
from ha.security.certificate_files import CA, CA_KEY, NEXT, new_folder, read_authority, replace

if TYPE_CHECKING:
    from ha.cluster.certificates import Held

_SHORT: Final = 16
"""Characters of a fingerprint that are shown: enough to distinguish it from others."""


class NotReady(Exception):
    """Daemons are not ready for a step, and nothing was changed; the message names them."""


@dataclass(frozen=True, slots=True)
class AuthorityChange:
    """The change of the authority in a folder."""

    folder: Path

    def check(self, step: int) -> None:
        """Raise ``BadCertificate`` or ``OSError`` unless the steps before were taken."""
        if step == 1:
            return
        if (self._following / CA).read_bytes() != certificates.newest(self._bundle()):
            raise certificates.BadCertificate("step 1 was not taken")
        read_signing(self.folder)
        next_key = (self._following / CA_KEY).read_bytes()
        if step > 2 and next_key != (self.folder / CA_KEY).read_bytes():
            raise certificates.BadCertificate("step 2 was not taken: the old authority still signs")

    def require_ready(self, step: int, daemons: Sequence["Held"]) -> None:
        """Raise ``NotReady`` unless every daemon could live with that step."""
        (wanted,) = certificates.fingerprints(certificates.newest(self._bundle()))
        lacking = [
            f"{one.daemon}: {reason}"
            for one in daemons
            if (reason := why_not_ready(step, one, wanted))
        ]
        if lacking:
            what = "the new authority would sign" if step == 2 else "the old authority would go"
            raise NotReady(
                f"step {step} was not taken: {what}, and not every daemon is ready. "
                f"{'; '.join(lacking)}. Nothing was changed; --unchecked asks nobody"
            )

    def take(self, step: int) -> str:
        """Do it; what to do next.  Raises OSError, or ``Present`` where it is done already."""
        match step:
            case 1:
                made = certificates.new_authority(cluster_of(self.folder), certificates.now())
                old = self._bundle()
                new_folder(self._following, {CA_KEY: made.key, CA: made.certificate})
                replace(self.folder, {CA: made.certificate + old})
                return (
                    f"step 1 of 3: {self.folder / CA} has the old and the new authority. Copy it "
                    f"over {CA} of every folder; step 2 asks whether all have it"
                )
            case 2:
                replace(self.folder, {CA_KEY: (self._following / CA_KEY).read_bytes()})
                return (
                    "step 2 of 3: the new authority signs. Renew every certificate (rotate --out) "
                    "now; step 3 asks whether all are renewed"
                )
            case _:
                replace(self.folder, {CA: certificates.newest(self._bundle())})
                (self._following / CA_KEY).unlink()
                (self._following / CA).unlink()
                self._following.rmdir()
                return (
                    f"step 3 of 3: {self.folder / CA} has the new authority alone. Copy it over "
                    f"{CA} of every folder: certificates of the old one are refused from then on"
                )

    @property
    def _following(self) -> Path:
        return self.folder / NEXT

    def _bundle(self) -> bytes:
        return (self.folder / CA).read_bytes()


def why_not_ready(step: int, daemon: "Held", wanted: str) -> str:
    """Return why a daemon would not survive a step towards the authority ``wanted``, or empty."""
    if daemon.error:
        return daemon.error
    if wanted not in daemon.trusts:
        known = ", ".join(one[:_SHORT] for one in daemon.trusts)
        return f"it does not trust {wanted[:_SHORT]} yet, only {known}"
    if step > 2 and daemon.signed_by != wanted:
        return f"its certificate is still signed by {daemon.signed_by[:_SHORT]}"
    return ""


def read_signing(folder: Path) -> certificates.Pair:
    """Return the signing authority: of the folder's bundle the certificate that the key matches.

    Raises:
        OSError, BadCertificate: there is none.
    """
    pair = read_authority(folder)
    for certificate in _each(pair.certificate):
        try:
            certificates.check_match(certificates.Pair(certificate, pair.key), pair.certificate)
        except certificates.BadCertificate:
            continue
        return certificates.Pair(certificate, pair.key)
    raise certificates.BadCertificate(
        f"{folder / CA_KEY} is the key of no certificate in {folder / CA}"
    )


def cluster_of(folder: Path) -> str:
    """Return the id of the cluster for which an authority signs.  Raises OSError."""
    return (folder / "cluster-id").read_text().strip()


def _each(bundle: bytes) -> Iterator[bytes]:
    end = b"-----END CERTIFICATE-----"
    for part in bundle.split(end)[:-1]:
        yield part.lstrip() + end + b"\n"
