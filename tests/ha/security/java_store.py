"""Java's stores for tests, as PKCS#12, and the files of Hadoop's that name them."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from ha.conf.configuration import Configuration, load_configuration
from ha.security.certificates import now

PASSWORD: Final = "of the store"
HTTPS: Final = "dfs.http.policy=HTTPS_ONLY"
_SITE: Final = "<configuration>{}</configuration>"
_PROPERTY: Final = "<property><name>{}</name><value>{}</value></property>"
Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def new_key() -> Key:
    return ec.generate_private_key(ec.SECP256R1())


def weak_key() -> Key:
    """Return a key that OpenSSL takes for none: of 512 bits less than anybody should use."""
    return rsa.generate_private_key(65537, 1024)


def key_store(path: Path, *, key: Key | None = None, password: str = PASSWORD) -> x509.Certificate:
    """Write a key for localhost with a certificate that it has signed itself."""
    held = new_key() if key is None else key
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    hosts = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    made = (
        x509.CertificateBuilder(name, name, held.public_key(), x509.random_serial_number())
        .not_valid_before(now() - timedelta(days=1))
        .not_valid_after(now() + timedelta(days=1))
        .add_extension(hosts, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(held, hashes.SHA256())
    )
    path.write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"server", held, made, None, serialization.BestAvailableEncryption(password.encode())
        )
    )
    return made


def trust_store(path: Path, *trusted: x509.Certificate) -> None:
    """Write certificates without any key, each under a name, as keytool does."""
    named = [pkcs12.PKCS12Certificate(one, f"{n}".encode()) for n, one in enumerate(trusted)]
    path.write_bytes(
        pkcs12.serialize_java_truststore(
            named, serialization.BestAvailableEncryption(PASSWORD.encode())
        )
    )


def site(path: Path, keys: Mapping[str, str]) -> None:
    """Write one of Hadoop's files."""
    path.write_text(_SITE.format("".join(_PROPERTY.format(*one) for one in keys.items())))


def name_stores(folder: Path, *, password: str = PASSWORD) -> None:
    """Write ssl-server.xml and ssl-client.xml, which name the stores in the same folder."""
    for name, which in (("server", "keystore"), ("client", "truststore")):
        start = f"ssl.{name}.{which}"
        keys = {f"{start}.location": str(folder / f"{which}.p12"), f"{start}.password": password}
        site(folder / f"ssl-{name}.xml", keys)


def with_stores(folder: Path) -> Path:
    """Write both stores and both files; return the folder."""
    folder.mkdir(exist_ok=True)
    trust_store(folder / "truststore.p12", key_store(folder / "keystore.p12"))
    name_stores(folder)
    return folder


def configured(folder: Path, *more: str) -> Configuration:
    (folder / "core-site.xml").write_text(_SITE.format(""))
    return load_configuration(folder, (HTTPS, *more), environment={})
