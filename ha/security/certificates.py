"""Certificates: an authority of one's own, what it signs, and what a certificate says.

ECDSA on P-256 with SHA-256.  Nothing here touches a file or a clock.
"""

import ipaddress
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ha.record import dataclass
from ha.security.caller import Role
from ha.security.names import BadName, CertifiedName, named_by

AUTHORITY_DAYS: Final = 3650
LEAF_DAYS: Final = 7
MOST_DAYS: Final = 90
"""Of a leaf that is not long-lived on purpose."""
CLOCK_SLACK: Final = timedelta(minutes=5)
"""A certificate is valid from this long before now: clocks of a cluster differ."""
SOON: Final = 0.25
"""A certificate with less than this part of its life left is to be renewed."""
BROWSING: Final = (Role.OPERATOR, Role.ADMIN)
"""Roles of people; a daemon's key has no business in a browser."""
_AUTHORITY_NAME: Final = "nnha CA "


class BadCertificate(ValueError):
    """A certificate, key or request that cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, in PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Leaf:
    """What a certificate of ours says.  ``name`` is None with the reason in ``nameless``."""

    name: CertifiedName | None
    nameless: str
    hosts: tuple[str, ...]
    serial: int
    not_before: datetime
    not_after: datetime
    fingerprint: str

    @property
    def uri(self) -> str:
        """The name as a URI, empty if the certificate has none."""
        return "" if self.name is None else self.name.uri

    def ending(self, present: datetime) -> str:
        """Return the warning where it has ended, or ends soon; else empty."""
        if self.left(present) >= SOON:
            return ""
        word = "ended" if self.not_after <= present else "ends"
        return f"{word} at {self.not_after:%Y-%m-%d %H:%M:%S} UTC: nnha security rotate renews it"

    def left(self, now: datetime) -> float:
        """Return which part of its life is left, 0 to 1."""
        life = (self.not_after - self.not_before).total_seconds()
        return max(0.0, min(1.0, (self.not_after - now).total_seconds() / life)) if life else 0.0


@dataclass(frozen=True, slots=True)
class CertificateRequest:
    """What is to be certified: a name, the hosts that it answers at, and for how long."""

    name: CertifiedName
    hosts: Sequence[str]
    days: float
    long_lived: bool = False

    def __post_init__(self) -> None:
        """Refuse what no certificate should have."""
        for host in self.hosts:
            if "*" in host:
                raise BadName(f"{host!r}: a certificate is for one host, never for a pattern")
            if not host or any(blank.isspace() for blank in host):
                raise BadName(f"{host!r} is no host")
        if not 0 < self.days <= AUTHORITY_DAYS:
            raise BadName(f"a certificate lasts more than 0 and at most {AUTHORITY_DAYS} days")
        if self.days > MOST_DAYS and not self.long_lived:
            raise BadName(
                f"{self.days:g} days are long: whoever steals the key has it for that time. At "
                f"most {MOST_DAYS} unless --long-lived is given"
            )


def new_key() -> bytes:
    """Make a private key in PEM."""
    return _key_bytes(ec.generate_private_key(ec.SECP256R1()))


def new_authority(cluster: str, now: datetime) -> Pair:
    """Make an authority with a name of its own; errors could not distinguish two of one name."""
    key = ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    name = x509.Name(
        [x509.NameAttribute(NameOID.COMMON_NAME, f"{_AUTHORITY_NAME}{cluster} {serial:x}"[:64])]
    )
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, key_cert_sign=True, crl_sign=True,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip
    built = (
        x509.CertificateBuilder(name, name, key.public_key(), serial)
        .not_valid_before(now - CLOCK_SLACK)
        .not_valid_after(now + timedelta(days=AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Pair(_pem(built), _key_bytes(key))


def issue(authority: Pair, wish: CertificateRequest, now: datetime) -> Pair:
    """Make a new key with a certificate.

    Raises:
        BadCertificate: the authority cannot be used.
    """
    key = new_key()
    public = _private(key).public_key()
    return Pair(_sign(authority, wish, public, now), key)


def request(key: bytes) -> bytes:
    """Ask for a certificate of this key; what it will say is for whoever signs to decide."""
    built = x509.CertificateSigningRequestBuilder(x509.Name([]))
    return built.sign(_private(key), hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def sign(authority: Pair, asked: bytes, wish: CertificateRequest, now: datetime) -> bytes:
    """Sign a request's key; nothing else of the request is used.

    Raises:
        BadCertificate: it is no request, or its key is of another kind.
    """
    try:
        found = x509.load_pem_x509_csr(asked)
    except ValueError as failure:
        raise BadCertificate(f"this is no certificate request: {failure}") from None
    public = found.public_key()
    if not found.is_signature_valid:
        raise BadCertificate("whoever made this request does not have its key")
    if not isinstance(public, ec.EllipticCurvePublicKey) or public.curve.name != "secp256r1":
        raise BadCertificate("its key is not ECDSA on P-256: nnha security request makes one")
    return _sign(authority, wish, public, now)


def parse(data: bytes) -> Leaf:
    """Parse a certificate in DER or PEM; of several the first.

    Raises:
        BadCertificate: it is none.
    """
    found = _load(data)
    uris: list[str] = []
    hosts: tuple[str, ...] = ()
    name, nameless = None, ""
    with _readable("it cannot be read"):
        try:
            names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            uris = names.get_values_for_type(x509.UniformResourceIdentifier)
            addresses = names.get_values_for_type(x509.IPAddress)
            hosts = (*names.get_values_for_type(x509.DNSName), *map(str, addresses))
        except x509.ExtensionNotFound:
            pass
        try:
            name = named_by(uris)
        except BadName as bad:
            nameless = str(bad)
        return Leaf(
            name, nameless, hosts, found.serial_number,
            found.not_valid_before_utc, found.not_valid_after_utc,
            found.fingerprint(hashes.SHA256()).hex(),
        )  # fmt: skip


def issuer_of(data: bytes, bundle: bytes) -> str:
    """Return the fingerprint of the authority in a bundle that has itself signed a certificate.

    Raises:
        BadCertificate: none has; one below an authority, of an intermediate, is not enough.
    """
    leaf = _load(data)
    for authority in _bundle(bundle):
        try:
            leaf.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
            continue
        return authority.fingerprint(hashes.SHA256()).hex()
    raise BadCertificate("the certificate was signed by none of the authorities that are trusted")


def fingerprints(bundle: bytes) -> tuple[str, ...]:
    """Return those of the authorities in a bundle; raise ``BadCertificate``."""
    return tuple(one.fingerprint(hashes.SHA256()).hex() for one in _bundle(bundle))


def authority_ends(bundle: bytes) -> datetime:
    """Return when the first of these authorities ends; raise ``BadCertificate``."""
    return min(one.not_valid_after_utc for one in _bundle(bundle))


def newest(bundle: bytes) -> bytes:
    """Return the authority of a bundle that began last; raise ``BadCertificate``."""
    return _pem(max(_bundle(bundle), key=lambda one: one.not_valid_before_utc))


def check_match(pair: Pair, bundle: bytes) -> str:
    """Return the fingerprint of the authority in a bundle that has signed this certificate.

    Raises:
        BadCertificate: these are no pair, or none has signed it.
    """
    with _readable("its key cannot be read"):
        if _private(pair.key).public_key() != _load(pair.certificate).public_key():
            raise BadCertificate("key and certificate are not of one pair")
    return issuer_of(pair.certificate, bundle)


def for_browser(pair: Pair, bundle: bytes, password: str) -> bytes:
    """Return a pair and the authorities that it trusts as PKCS#12, under a password.

    Raises:
        BadCertificate: they do not belong together, or it is no person's.
    """
    check_match(pair, bundle)
    leaf = parse(pair.certificate)
    if leaf.name is None or leaf.name.role not in BROWSING:
        raise BadCertificate(
            f"this is the certificate of {leaf.name or 'nothing of ours'}: a browser gets one of "
            f"the role {' or '.join(BROWSING)} → nnha security issue operator YOU"
        )
    return pkcs12.serialize_key_and_certificates(
        leaf.uri.encode(), _private(pair.key), _load(pair.certificate), _bundle(bundle),
        serialization.BestAvailableEncryption(password.encode()),
    )  # fmt: skip


def _sign(
    authority: Pair, wish: CertificateRequest, public: ec.EllipticCurvePublicKey, now: datetime
) -> bytes:
    issuer, key = _load(authority.certificate), _private(authority.key)
    if issuer.public_key() != key.public_key():
        raise BadCertificate("the authority's key is not that of its certificate")
    ends = now + timedelta(days=wish.days)
    if issuer.not_valid_after_utc < ends:
        raise BadCertificate(
            f"the authority ends at {issuer.not_valid_after_utc:%Y-%m-%d %H:%M}, before that "
            "certificate would: make a new one with nnha security rotate --ca"
        )
    uri = x509.UniformResourceIdentifier(wish.name.uri)
    usage = x509.ExtendedKeyUsage(
        [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    )
    common = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, str(wish.name)[:64])])
    identifier = x509.SubjectKeyIdentifier.from_public_key(public)
    built = (
        x509.CertificateBuilder(issuer.subject, common, public, x509.random_serial_number())
        .not_valid_before(now - CLOCK_SLACK)
        .not_valid_after(ends)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([*map(_host, wish.hosts), uri]), critical=False)
        .add_extension(_LEAF_USAGE, critical=True)
        .add_extension(usage, critical=False)
        .add_extension(identifier, critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    return _pem(built)


_LEAF_USAGE: Final = x509.KeyUsage(
    digital_signature=True, content_commitment=False, key_encipherment=False,
    data_encipherment=False, key_agreement=False, key_cert_sign=False, crl_sign=False,
    encipher_only=False, decipher_only=False,
)  # fmt: skip


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return x509.DNSName(host.lower())


@contextmanager
def _readable(what: str) -> Iterator[None]:
    """Turn what is raised into ``BadCertificate``: the library has errors of many kinds."""
    try:
        yield
    except BadCertificate:
        raise
    except Exception as failure:
        raise BadCertificate(f"{what}: {failure}") from failure


def _load(data: bytes) -> x509.Certificate:
    with _readable("this is no certificate"):
        if data.lstrip().startswith(b"-----"):
            return x509.load_pem_x509_certificate(data)
        return x509.load_der_x509_certificate(data)


def _bundle(data: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(data)
    except ValueError as failure:
        raise BadCertificate(f"these are no certificates: {failure}") from None


def _private(key: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        found = serialization.load_pem_private_key(key, None)
    except (ValueError, TypeError) as failure:
        raise BadCertificate(f"this is no private key without a password: {failure}") from None
    if not isinstance(found, ec.EllipticCurvePrivateKey):
        raise BadCertificate("the key is not ECDSA")
    return found


def _key_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def now() -> datetime:
    """Return the present, as certificates count it."""
    return datetime.now(UTC)
