"""Java's stores for HTTPS: what is read, what is refused, and what happens when one changes."""

import os
import re
import ssl
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from ha.conf.errors import ConfigurationError
from ha.console.own_certificate import call_under_certificate
from ha.security.caller import Role
from ha.security.own_tls import (
    ask_pages_as_configured,
    own_tls,
    segment_context,
    segment_scheme,
)
from ha.security.page_store import PageStore, page_certificate, trusted_pages
from journal.links.link import segment_url
from journal.model import JournalId, TxId
from tests.ha.security.acting import acting_as
from tests.ha.security.authority import Authority
from tests.ha.security.java_store import (
    PASSWORD,
    configured,
    key_store,
    name_stores,
    site,
    trust_store,
    weak_key,
    with_stores,
)
from tests.log_lines import captured
from tests.needs import JAVA_COMPILER


def shaken(server: ssl.SSLContext, client: ssl.SSLContext, host: str = "localhost") -> bytes:
    """Return the certificate that a client is shown, in memory; raise SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        server.wrap_bio(to_server, to_client, server_side=True),
        client.wrap_bio(to_client, to_server, server_hostname=host),
    )
    waiting = list(ends)
    for _ in range(10):
        for one in tuple(waiting)[::-1]:
            try:
                one.do_handshake()
                waiting.remove(one)
            except ssl.SSLWantReadError:
                continue
        if not waiting:
            return ends[1].getpeercert(binary_form=True) or b""
    raise AssertionError("the handshake does not end")


def served(folder: Path) -> PageStore:
    found = page_certificate(configured(folder), None)
    assert isinstance(found, PageStore)
    return found


def test_a_server_shows_what_is_in_its_store_and_a_client_trusts_what_is_in_its_own(
    tmp_path: Path,
) -> None:
    store, client = served(with_stores(tmp_path)), trusted_pages(configured(tmp_path))
    assert shaken(store.context, client)
    with pytest.raises(ssl.SSLCertVerificationError, match="not valid for"):
        shaken(store.context, client, "jn2.example")
    (tmp_path / "ssl-client.xml").unlink()
    with pytest.raises(ssl.SSLCertVerificationError, match="self-signed"):
        shaken(store.context, trusted_pages(configured(tmp_path)))


def test_nothing_older_than_tls_1_3_is_spoken(tmp_path: Path) -> None:
    store, client = served(with_stores(tmp_path)), ssl.create_default_context()
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError, match=r"(?i)protocol"):
        shaken(store.context, client)


def _jks(path: Path) -> None:
    path.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "a JKS store": (lambda store: _jks(store), "it is a JKS store, which Java alone reads"),
    "another password": (
        lambda store: key_store(store, password="x"),
        "Invalid password or PKCS12 data",
    ),
    "no store at all": (
        lambda store: store.write_bytes(b"-----BEGIN"),
        "Could not deserialize",
    ),
    "no file": (lambda store: store.unlink(), "No such file or directory"),
    "no key": (lambda store: trust_store(store, key_store(store)), "it has no private key"),
    "a weak key": (lambda store: key_store(store, key=weak_key()), "ee key too small"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_store_that_cannot_be_used_is_refused_with_its_file_and_the_reason(
    tmp_path: Path, case: str
) -> None:
    spoil, why = REFUSED[case]
    store = with_stores(tmp_path) / "keystore.p12"
    spoil(store)
    with pytest.raises(ConfigurationError, match=re.escape(why)) as refused:
        served(tmp_path)
    assert str(refused.value).startswith(f"{tmp_path}/ssl-server.xml: ssl.server.keystore.location")
    assert PASSWORD not in str(refused.value)


def test_what_is_missing_or_not_served_is_said_with_its_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"there is no certificate\. Name a PKCS#12 file"):
        served(tmp_path)
    with_stores(tmp_path)
    with pytest.raises(ConfigurationError, match=r"need-auth is true, but nnha's pages ask for no"):
        page_certificate(configured(tmp_path, "dfs.client.https.need-auth=true"), None)
    name_stores(tmp_path, password="")
    with pytest.raises(
        ConfigurationError, match=r"no credential provider is asked.*Invalid password"
    ):
        served(tmp_path)
    elsewhere = {
        "ssl.server.keystore.location": "${stores}/keystore.p12",
        "ssl.server.keystore.password": PASSWORD,
    }
    site(tmp_path / "other.xml", elsewhere)
    keys = ("dfs.https.server.keystore.resource=other.xml", f"stores={tmp_path}")
    assert isinstance(page_certificate(configured(tmp_path, *keys), None), PageStore)
    with pytest.raises(ConfigurationError, match=r"ssl-client.*no credential provider is asked"):
        trusted_pages(configured(tmp_path))
    trusted_pages(configured(tmp_path, "hadoop.ssl.client.conf=none.xml"))


def test_a_renewed_store_counts_from_the_next_connection_on_and_a_broken_one_never(
    tmp_path: Path,
) -> None:
    store, client = served(with_stores(tmp_path)), trusted_pages(configured(tmp_path))
    before = shaken(store.context, client)
    with captured("security.store_") as logs:
        renewed = key_store(tmp_path / "new")
        trust_store(tmp_path / "truststore.p12", renewed)
        (tmp_path / "keystore.p12").write_bytes((tmp_path / "new").read_bytes()[:100])
        server = store.context
        with pytest.raises(ssl.SSLCertVerificationError):
            shaken(server, client)  # the old one goes on, and is not trusted any more
        (tmp_path / "new").rename(tmp_path / "keystore.p12")
        after = shaken(server, client)
        (tmp_path / "keystore.p12").unlink()
        assert shaken(server, client) == after
    assert before != after
    events = [line["event"] for line in logs]
    assert sorted(set(events)) == ["security.store_changed", "security.store_kept"]
    assert events.count("security.store_changed") == 2, "of the trusted, and of the keys"


def test_with_certificates_of_ours_no_store_is_read(tmp_path: Path) -> None:
    files = Authority(tmp_path).holder(Role.JOURNALNODE, "jn1")
    assert page_certificate(configured(tmp_path), files) is files
    with acting_as(files):
        ask_pages_as_configured(configured(tmp_path))
        assert segment_scheme() == "https"
        assert segment_context() is files.client(Role.JOURNALNODE)


def test_segments_are_asked_for_as_the_policy_says(tmp_path: Path) -> None:
    assert own_tls() is None
    asked = partial(
        segment_url, "::1", 8481, journal_id=JournalId("j"), first=TxId(1), namespace=None,
        in_progress=False,
    )  # fmt: skip
    ask_pages_as_configured(configured(with_stores(tmp_path)))
    assert asked().startswith("https://[::1]:8481/getJournal?")
    client = segment_context()
    assert client is not None
    assert shaken(served(tmp_path).context, client)
    ask_pages_as_configured(configured(tmp_path, "dfs.http.policy=HTTP_AND_HTTPS"))
    assert segment_context() is None
    assert asked().startswith("http://[::1]:8481/getJournal?")


def test_a_command_goes_on_without_the_store_that_it_cannot_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _jks(with_stores(tmp_path) / "truststore.p12")
    call_under_certificate(configured(tmp_path))
    assert "ssl.client.truststore.location" in capsys.readouterr().err
    assert segment_context() is None


@JAVA_COMPILER.mark
def test_a_jks_store_is_usable_after_the_command_that_its_refusal_names(tmp_path: Path) -> None:
    """With keytool's own stores, of a key and of a certificate that is trusted."""
    keytool = ("keytool", "-storepass", PASSWORD, "-alias", "a")
    key, trusted, shown = tmp_path / "k.jks", tmp_path / "t.jks", tmp_path / "shown"
    made = ("-genkeypair", "-keyalg", "RSA", "-keysize", "2048", "-keypass", PASSWORD)
    names = ("-dname", "CN=localhost", "-ext", "san=dns:localhost", "-storetype", "JKS")
    run(*keytool, *made, *names, "-keystore", str(key))
    run(*keytool, "-exportcert", "-keystore", str(key), "-file", str(shown))
    run(*keytool, "-importcert", "-noprompt", "-storetype", "JKS", "-keystore", str(trusted),
        "-file", str(shown))  # fmt: skip
    for name, which, store in (("server", "keystore", key), ("client", "truststore", trusted)):
        start, file = f"ssl.{name}.{which}", tmp_path / f"ssl-{name}.xml"
        site(file, {f"{start}.location": str(store), f"{start}.password": PASSWORD})
        with pytest.raises(ConfigurationError) as refused:
            both(tmp_path)
        command = str(refused.value).partition("the new one: ")[2].split()
        run(*command, "-srcstorepass", PASSWORD, "-deststorepass", PASSWORD)
        new = store.with_suffix(".p12")
        site(file, {f"{start}.location": str(new), f"{start}.password": PASSWORD})
    assert shaken(*both(tmp_path))


def both(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return contexts of a server and of its clients."""
    return served(folder).context, trusted_pages(configured(folder))


def run(*command: str) -> None:
    done = subprocess.run(
        command, env=os.environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
