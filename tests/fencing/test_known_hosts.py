"""Known hosts, line by line as OpenSSH reads them: ssh-keygen and a real sshd are the measure."""

import base64
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fencing.known_hosts import (
    KnownHosts,
    Marker,
    Refused,
    Trust,
    judge,
    read_known_hosts,
)
from fencing.ssh_settings import HostKeys
from tests.fencing.sshd import Sshd, fenced, free_port, make_key, needs_sshd, settings, sshd_in
from tests.log_lines import captured


def _key(body: bytes, kind: str = "ssh-ed25519") -> str:
    parts = (kind.encode(), body)
    blob = b"".join(len(part).to_bytes(4) + part for part in parts)
    return f"{kind} {base64.b64encode(blob).decode()}"


A, B, RSA, CA = _key(b"a" * 32), _key(b"b" * 32), _key(b"r" * 32, "ssh-rsa"), _key(b"c" * 32)


def _blob(key: str) -> bytes:
    return base64.b64decode(key.split()[1])


def _check(said: Trust | Refused, expected: Trust | None) -> None:
    assert isinstance(said, Refused) if expected is None else said is expected, said


#   the file, the key that nn1:22 shows, its signer -> what the file says of it; None: refused
SAID: dict[str, tuple[list[str], str, str | None, Trust | None]] = {
    "its key": ([f"nn1 {A}"], A, None, Trust.KNOWN),
    "its key, behind another host's": ([f"nn2 {B}", f"nn1 {A} a comment"], A, None, Trust.KNOWN),
    "one of two keys of a kind": ([f"nn1 {B}", f"nn1 {A}"], A, None, Trust.KNOWN),
    "another key": ([f"nn1 {B}"], A, None, None),
    "a key of another kind": ([f"nn1 {RSA}"], A, None, None),
    "no key": ([f"nn2 {A}"], A, None, Trust.UNKNOWN),
    "a comment": ([f"# nn1 {A}"], A, None, Trust.UNKNOWN),
    "upper case": ([f"NN1 {A}"], A, None, Trust.KNOWN),
    "one of a list": ([f"nn9,nn1,10.0.0.1 {A}"], A, None, Trust.KNOWN),
    "a pattern": ([f"n?1,x* {A}"], A, None, Trust.KNOWN),
    "a pattern that forbids it": ([f"n*,!nn1 {A}"], A, None, Trust.UNKNOWN),
    "a pattern of another": ([f"n?2 {A}"], A, None, Trust.UNKNOWN),
    "another port": ([f"[nn1]:2222 {A}"], A, None, Trust.UNKNOWN),
    "revoked": ([f"nn1 {A}", f"@revoked * {A}"], A, None, None),
    "revoked, written first": ([f"@revoked nn1 {A}", f"nn1 {A}"], A, None, None),
    "another's is revoked": ([f"nn1 {A}", f"@revoked nn2 {A}"], A, None, Trust.KNOWN),
    "signed by its authority": ([f"@cert-authority nn* {CA}"], A, CA, Trust.SIGNED),
    "signed by another's": ([f"@cert-authority nn2 {CA}"], A, CA, Trust.UNKNOWN),
    "an authority is no key of a host": ([f"@cert-authority nn1 {A}"], A, None, Trust.UNKNOWN),
    "a key of a host is no authority": ([f"nn1 {CA}"], A, CA, None),
    "its authority is revoked": ([f"@cert-authority * {CA}", f"@revoked * {CA}"], A, CA, None),
    "signed, and it is revoked": ([f"@cert-authority * {CA}", f"@revoked * {A}"], A, CA, None),
    "signed by a stranger, and its key is known": ([f"nn1 {A}"], A, CA, Trust.KNOWN),
    "lines that it has to skip": (["", "junk", "nn1 1 2 3", f"nn1 {A}"], A, None, Trust.KNOWN),
}  # fmt: skip


@pytest.mark.parametrize("case", SAID)
def test_what_a_file_says_of_a_key(case: str) -> None:
    lines, shown, authority, expected = SAID[case]
    known = read_known_hosts("\n".join(lines))
    signer = None if authority is None else _blob(authority)
    _check(judge(known, "nn1", 22, _blob(shown), signer), expected)


def test_a_host_at_another_port_may_be_known_by_its_bare_name() -> None:
    for lines, expected in {
        f"[nn1]:2222 {A}": Trust.KNOWN,
        f"nn1 {A}": Trust.KNOWN,
        f"nn1 {B}": Trust.UNKNOWN,  # of the sshd at port 22
        f"[nn1]:2222 {B}": None,
        f"[nn1]:2222 {B}\nnn1 {A}": Trust.KNOWN,
        f"@revoked nn1 {A}\n[nn1]:2222 {A}": None,
    }.items():
        _check(judge(read_known_hosts(lines), "nn1", 2222, _blob(A), None), expected)


SKIPPED = {
    "nn1 1024 65537 1234567": "SSH-1",
    "nn1": "no host, kind and key",
    f"@trusted nn1 {A}": "unknown marker @trusted",
    "@revoked": "no host, kind and key",
    "nn1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI": "base64",
    "nn1 ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ==": "not all of one",
    f"nn1 ssh-rsa {A.split()[1]}": "no ssh-rsa key",
    "\ufffd\ufffd": "no host, kind and key",
}


@pytest.mark.parametrize("line", SKIPPED)
def test_a_line_that_cannot_be_read_is_skipped_and_named(line: str) -> None:
    known = read_known_hosts(f"# ours\n{line}\nnn1 {A}\n")
    assert [one.number for one in known.keys] == [3]
    (why,) = known.skipped
    assert why.startswith("line 2 ")
    assert SKIPPED[line] in why


def test_a_host_is_asked_for_the_kinds_that_can_be_checked() -> None:
    known = read_known_hosts(f"nn1 {RSA}\n@revoked nn1 {B}\n@cert-authority *.x {CA}\nnn2 {A}")
    assert known.kinds("nn1", 22) == ("ssh-rsa",)
    assert known.kinds("nn1.x", 22) == ("-cert-v01@openssh.com",)
    assert KnownHosts().kinds("nn1", 22) == ()


HOSTS = ("nn1", "NN1", "[nn1]:2222", "nn1,nn2", "n*", "n?1", "*,!nn1", "[n*]:22?2", "[nn1]", "")


@needs_sshd
@pytest.mark.parametrize("hosts", [one for one in HOSTS if one])
@pytest.mark.parametrize("hashed", [False, True], ids=["plain", "hashed"])
def test_a_line_is_for_the_hosts_for_which_ssh_keygen_finds_it(
    tmp_path: Path, hosts: str, *, hashed: bool
) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"{hosts} {A}\n")
    if hashed:
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True)
    known = read_known_hosts(file.read_text())
    assert known.skipped == ()
    for host, port in (("nn1", 22), ("nn2", 22), ("nn1", 2222), ("nn12", 22)):
        named = host if port == 22 else f"[{host}]:{port}"
        found = subprocess.run(["ssh-keygen", "-F", named, "-f", str(file)], capture_output=True)
        exact = known.of(named, 22, Marker.NONE)
        assert bool(exact) is (found.returncode == 0), (hosts, named, found.stdout)
        assert set(exact) <= set(known.of(host, port, Marker.NONE))


UNREADABLE = b"@cert-authority *.x ssh-ed25519 AAAA\nnn9 1024 65537 123\n\xff\xfe\n@odd x y z\n"


@needs_sshd
async def test_lines_that_cannot_be_read_cost_nothing(sshd: Sshd, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    known.write_bytes(UNREADABLE + sshd.known_hosts.read_bytes())
    with captured("fencing.known_hosts.skipped") as logs:
        report = await fenced(sshd, free_port(), replace(settings(sshd), known_hosts=known))
    assert report.fenced, report
    skipped = [one["why"] for one in logs]
    assert [one.split()[1] for one in skipped] == ["1", "2", "3", "4"]
    known.write_bytes(UNREADABLE)
    unknown = await fenced(sshd, free_port(), replace(settings(sshd), known_hosts=known))
    assert "is not in" in str(unknown)
    assert "line 2 is a key of SSH-1" in str(unknown)


@needs_sshd
@pytest.mark.parametrize("policy", [HostKeys.STRICT, HostKeys.ACCEPT_NEW])
async def test_a_revoked_key_is_refused(sshd: Sshd, tmp_path: Path, policy: HostKeys) -> None:
    known = tmp_path / "known_hosts"
    line = sshd.known_hosts.read_text()
    known.write_text(f"{line}@revoked * {' '.join(line.split()[1:])}\n")
    how = replace(settings(sshd), known_hosts=known, host_keys=policy)
    report = await fenced(sshd, free_port(), how)
    assert not report.fenced
    assert "line 2 revokes it" in str(report)


@needs_sshd
async def test_a_new_host_is_added_and_no_other_line_is_changed(sshd: Sshd, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    before = b"# ours\n" + UNREADABLE + f"@revoked nn9 {A}\n|1|bad\nnn9 {A}".encode()
    known.write_bytes(before)
    how = replace(settings(sshd), known_hosts=known, host_keys=HostKeys.ACCEPT_NEW)
    for _ in range(2):
        assert (await fenced(sshd, free_port(), how)).fenced
    assert known.read_bytes() == before + b"\n" + sshd.known_hosts.read_bytes()


@needs_sshd
async def test_the_key_of_the_kind_that_the_file_has_is_asked_for(tmp_path: Path) -> None:
    make_key(tmp_path / "rsa_key", kind="rsa")
    with sshd_in(tmp_path, more=f"HostKey {tmp_path / 'rsa_key'}\n") as daemon:
        public = (tmp_path / "rsa_key.pub").read_text()
        daemon.known_hosts.write_text(f"[127.0.0.1]:{daemon.port} {public}")
        assert (await fenced(daemon, free_port())).fenced


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """Run an sshd whose host key has a certificate for 127.0.0.1, which is put in later."""
    folder = tmp_path_factory.mktemp("certified")
    make_key(folder / "ca")
    make_key(folder / "host_key")
    certify(folder)
    with sshd_in(folder, more=f"HostCertificate {folder / 'host_key-cert.pub'}\n") as running:
        yield running


def certify(folder: Path, *how: str, name: str = "127.0.0.1") -> None:
    sign = ["ssh-keygen", "-q", "-s", str(folder / "ca"), "-I", "it", "-n", name, *(how or ("-h",))]
    subprocess.run([*sign, str(folder / "host_key.pub")], check=True)


@needs_sshd
async def test_a_hosts_certificate_is_obeyed(certified: Sshd, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    how = replace(settings(certified), known_hosts=known)
    authority = (certified.folder / "ca.pub").read_text().strip()
    key = (certified.folder / "host_key.pub").read_text().strip()
    for lines, told in {
        f"@cert-authority 127.0.0.* {authority}": None,
        f"@cert-authority 127.0.0.* {authority}\n127.0.0.1 {key}": None,
        f"127.0.0.1 {key}": None,
        f"@cert-authority 10.0.0.* {authority}": "is not in",
        f"@cert-authority * {authority}\n@revoked * {authority}": "line 2 revokes it",
        f"@cert-authority * {authority}\n@revoked * {key}": "line 2 revokes it",
        f"@cert-authority * {A}": "is not in",
    }.items():
        known.write_text(f"{lines}\n")
        report = await fenced(certified, free_port(), how)
        assert report.fenced is (told is None), (lines, report)
        assert (told or "") in str(report)


CERTIFICATES = {
    "it is for nn9": (["-h"], "nn9"),
    "no longer valid": (["-h", "-V", "20200101:20200102"], "127.0.0.1"),
    "not valid yet": (["-h", "-V", "20990101:20990102"], "127.0.0.1"),
    "options that are not known": (["-h", "-O", "critical:x=y"], "127.0.0.1"),
}


@needs_sshd
@pytest.mark.parametrize("told", CERTIFICATES)
async def test_a_certificate_that_is_not_valid_is_refused(told: str, tmp_path: Path) -> None:
    how, name = CERTIFICATES[told]
    for key in ("ca", "host_key"):
        make_key(tmp_path / key)
    certify(tmp_path, *how, name=name)
    with sshd_in(tmp_path, more=f"HostCertificate {tmp_path / 'host_key-cert.pub'}\n") as daemon:
        daemon.known_hosts.write_text(f"@cert-authority * {(tmp_path / 'ca.pub').read_text()}")
        report = await fenced(daemon, free_port())
    assert not report.fenced
    assert told in str(report)
