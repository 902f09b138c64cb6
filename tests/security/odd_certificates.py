"""Certificates that an authority has signed, and that say odd things or come by a detour."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, NameOID

from ha.security.certificates import Pair, now
from tests.ha.security.authority import Authority

URI: Final = b"nnha://c1/admin/mallory"


def tlv(tag: int, content: bytes) -> bytes:
    assert len(content) < 0x80
    return bytes([tag, len(content)]) + content


OURS: Final = tlv(0x86, URI)
LOCALHOST: Final = tlv(0x82, b"localhost")
ODD_NAMES: Final[Mapping[str, bytes]] = {
    "an x400Address": tlv(0x30, OURS + tlv(0xA3, tlv(0x30, b""))),
    "an ediPartyName": tlv(0x30, OURS + tlv(0xA5, tlv(0xA1, tlv(0x0C, b"x")))),
    "an ediPartyName first": tlv(0x30, tlv(0xA5, tlv(0xA1, tlv(0x0C, b"x"))) + OURS),
    "no sequence": tlv(0x04, OURS),
    "cut short": tlv(0x30, OURS)[:-1],
    "no DER": b"\xff\xff\xff",
    "nothing": b"",
    "an address of three bytes": tlv(0x30, OURS + tlv(0x87, b"\x7f\x00\x01")),
    "a host that is not ASCII": tlv(0x30, OURS + tlv(0x82, b"h\xff\xfe")),
    "a URI that is not ASCII": tlv(0x30, OURS + tlv(0x86, b"nnha://c1/admin/\xff")),
    "a tag of no name": tlv(0x30, OURS + tlv(0x8F, b"x")),
    "two URIs of ours": tlv(0x30, OURS + tlv(0x86, b"nnha://c1/admin/bob")),
}
"""Extensions of alternative names, each with the name of an administrator in it."""


def signed(
    by: Pair, *, names: bytes = tlv(0x30, OURS + LOCALHOST), authority: bool = False
) -> Pair:
    """Return a key and its certificate, for an end or for a further authority."""
    issuer = x509.load_pem_x509_certificate(by.certificate)
    own = serialization.load_pem_private_key(by.key, None)
    assert isinstance(own, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "odd")])
    builder = (
        x509.CertificateBuilder(
            issuer.subject, subject, key.public_key(), x509.random_serial_number()
        )
        .not_valid_before(now() - timedelta(hours=1))
        .not_valid_after(now() + timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if not authority:
        oid = ExtensionOID.SUBJECT_ALTERNATIVE_NAME
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(
            x509.UnrecognizedExtension(oid, names), critical=False
        ).add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    made = builder.sign(own, hashes.SHA256())
    return Pair(
        made.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def below_an_intermediate(authority: Authority) -> Pair:
    """Return an administrator's pair, which another authority below ours has signed."""
    between = signed(authority.pair, authority=True)
    end = signed(between)
    return Pair(end.certificate + between.certificate, end.key)


def _named(authority: Authority, names: bytes) -> Pair:
    return signed(authority.pair, names=names)


ODD: Final[Mapping[str, Callable[[Authority], Pair]]] = {
    **{case: partial(_named, names=names) for case, names in ODD_NAMES.items()},
    "of an intermediate": below_an_intermediate,
}
