"""Private keys in every format that ssh-keygen writes, and what is said of those of no use."""

import base64
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from fencing.ssh_keys import BadKey, authority_of, fault_of_certificate, open_key
from tests.fencing.sshd import (
    USER,
    Sshd,
    authorized,
    fenced,
    free_port,
    make_key,
    needs_sshd,
    settings,
    sshd_in,
)

FORMATS = [
    (kind, form)
    for kind in ("ed25519", "ecdsa", "rsa")
    for form in ("RFC4716", "PEM", "PKCS8")
    if (kind, form) != ("ed25519", "PEM")
]


def _made(path: Path, kind: str, form: str, passphrase: str = "") -> Path:
    """Make a key; ``RFC4716`` is how ssh-keygen calls OpenSSH's own format."""
    size = ["-b", "2048"] if kind == "rsa" else []
    make = ["ssh-keygen", "-q", "-t", kind, *size, "-m", form, "-N", passphrase, "-f", str(path)]
    subprocess.run(make, check=True)
    return path


@needs_sshd
@pytest.mark.parametrize(("kind", "form"), FORMATS)
async def test_a_key_of_every_kind_and_format_gets_in(
    sshd: Sshd, tmp_path: Path, kind: str, form: str
) -> None:
    key = _made(tmp_path / "key", kind, form)
    with authorized(sshd, key):
        report = await fenced(sshd, free_port(), replace(settings(sshd), key_files=(key,)))
    assert report.fenced, report


@needs_sshd
@pytest.mark.parametrize(("kind", "form"), FORMATS)
def test_an_encrypted_key_opens_with_its_passphrase_alone(
    tmp_path: Path, kind: str, form: str
) -> None:
    key = _made(tmp_path / "key", kind, form, "open sesame")
    open_key(key, "open sesame")
    with pytest.raises(BadKey, match=rf"{key} is encrypted; set nnha\.fencing\.ssh\.passphrase"):
        open_key(key, None)
    with pytest.raises(BadKey, match=rf"does not open {key}") as told:
        open_key(key, "hunter2")
    assert "hunter2" not in str(told.value)
    open_key(_made(tmp_path / "plain", kind, form), "open sesame")


OF_NO_USE = {
    "a public key": ("ssh-ed25519 AAAA me", "it is a public key"),
    "PuTTY's": ("PuTTY-User-Key-File-3: ssh-ed25519", "puttygen"),
    "a certificate": ("-----BEGIN CERTIFICATE-----\nAAAA\n", "BEGIN CERTIFICATE"),
    "cut off": ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n", "BEGIN OPENSSH PRIVATE KEY"),
    "nothing": ("", "it is not OpenSSH's format, PEM or PKCS#8"),
}


@pytest.mark.parametrize("case", OF_NO_USE)
def test_a_file_that_is_no_private_key_is_named(tmp_path: Path, case: str) -> None:
    text, told = OF_NO_USE[case]
    key = tmp_path / "the-key"
    key.write_text(text)
    with pytest.raises(BadKey, match=str(key)) as failure:
        open_key(key, None)
    assert told in str(failure.value)
    with pytest.raises(BadKey, match=f"cannot read the private key {tmp_path}: Is a directory"):
        open_key(tmp_path, None)


@needs_sshd
async def test_one_key_that_cannot_be_read_does_not_cost_the_others(
    sshd: Sshd, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    broken.write_text("no key")
    files = (broken, tmp_path / "missing", sshd.key)
    assert (await fenced(sshd, free_port(), replace(settings(sshd), key_files=files))).fenced
    report = await fenced(sshd, free_port(), replace(settings(sshd), key_files=files[:2]))
    assert not report.fenced
    for told in (f"{broken} is no private key", f"{files[1]}: No such file or directory"):
        assert told in str(report)


@needs_sshd
async def test_a_users_certificate_lies_next_to_its_key(tmp_path: Path, sshd: Sshd) -> None:
    authority, key = make_key(tmp_path / "ca"), _made(tmp_path / "key", "ecdsa", "PKCS8")
    sign = ["ssh-keygen", "-q", "-s", str(authority), "-I", "it", "-n", USER, f"{key}.pub"]
    subprocess.run(sign, check=True)
    assert "it is one of a user" in fault_of_certificate(_blob(f"{key}-cert.pub"), "root", 1e9 * 2)
    with authorized(sshd):
        file = sshd.folder / "authorized_keys"
        file.write_text(f"cert-authority {Path(f'{authority}.pub').read_text()}")
        for named in (key, Path(f"{key}-cert.pub")):
            report = await fenced(sshd, free_port(), replace(settings(sshd), key_files=(named,)))
            assert report.fenced, report


@needs_sshd
async def test_a_host_that_wants_two_keys_gets_two(tmp_path: Path) -> None:
    with sshd_in(tmp_path, more="AuthenticationMethods publickey,publickey\n") as daemon:
        second = make_key(tmp_path / "second")
        with authorized(daemon, second):
            alone = await fenced(daemon, free_port())
            both = replace(settings(daemon), key_files=(daemon.key, second))
            assert (await fenced(daemon, free_port(), both)).fenced
    assert not alone.fenced
    assert "it asks for more than a key: publickey" in str(alone)


@needs_sshd
def test_a_hosts_certificate_is_checked_to_its_last_byte(tmp_path: Path) -> None:
    authority, key = make_key(tmp_path / "ca"), make_key(tmp_path / "key")
    sign = ["ssh-keygen", "-q", "-s", str(authority), "-I", "it", "-h", f"{key}.pub"]
    subprocess.run(sign, check=True)
    made = _blob(f"{key}-cert.pub")
    assert authority_of(made) == _blob(f"{authority}.pub")
    assert fault_of_certificate(made, "any.host", 2e9) == "", "one without a name is for all"
    assert "signature is wrong" in fault_of_certificate(made[:-1] + b"?", "any.host", 2e9)
    with pytest.raises(ValueError, match="a key without a certificate"):
        authority_of(_blob(f"{key}.pub"))


def _blob(certificate: str) -> bytes:
    return base64.b64decode(Path(certificate).read_text().split()[1])
