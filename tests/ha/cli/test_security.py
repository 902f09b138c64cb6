"""``nnha security``: what its files are, and what it never does.

Status and doctor name certificates that end soon.
"""

import dataclasses
import json
import os
import stat
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives.serialization import Encoding, pkcs12

from ha.cli.authority_change import AuthorityChange, NotReady
from ha.cli.certificate_report import problems_of
from ha.cli.explain.doctor.cluster import check_cluster
from ha.cli.explain.doctor.local import check_security
from ha.cli.security import security
from ha.cluster.certificates import Held
from ha.cluster.check_result import Severity
from ha.cluster.problems import problems
from ha.security.caller import Role
from ha.security.certificate_files import Present, new_folder
from ha.security.certificates import (
    CertificateRequest,
    fingerprints,
    issue,
    new_authority,
    now,
    parse,
)
from ha.security.names import BadName, CertifiedName, named_by
from ha.security.own_tls import ending_certificates
from ha.security.tls_files import TlsFiles
from tests.ha.cli.test_cluster_view import WELL
from tests.ha.cli.test_doctor import configured
from tests.ha.security.acting import acting_as
from tests.ha.security.authority import Authority


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(security, [str(word) for word in words])


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    assert run("init", "--dir", tmp_path / "ca", "--cluster-id", "c1").exit_code == 0
    return tmp_path / "ca"


def issued(authority: Path, *more: str) -> tuple[Path, Result]:
    out = authority.parent / "leaf"
    hosts = ("--host", "localhost", "--host", "127.0.0.1")
    return out, run("issue", "namenode", "nn1", *hosts, "--dir", authority, "--out", out, *more)


def test_keys_are_for_their_user_alone_whatever_the_umask(authority: Path) -> None:
    before = os.umask(0)
    try:
        out, made = issued(authority)
    finally:
        os.umask(before)
    assert made.exit_code == 0, made.output
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (out, *out.iterdir())}
    assert modes == {"leaf": 0o700, "ca.pem": 0o600, "cert.pem": 0o600, "key.pem": 0o600}


def test_a_certificate_names_role_cluster_and_hosts(authority: Path) -> None:
    out, _ = issued(authority)
    leaf = parse((out / "cert.pem").read_bytes())
    assert leaf.uri == "nnha://c1/namenode/nn1"
    assert leaf.hosts == ("localhost", "127.0.0.1")
    assert timedelta(days=6) < leaf.not_after - now() <= timedelta(days=7)
    assert run("check", out).exit_code == 0


def test_nothing_is_overwritten(authority: Path) -> None:
    out, _ = issued(authority)
    before = (authority / "ca.key").read_bytes(), (out / "key.pem").read_bytes()
    _, again = issued(authority)
    assert again.exit_code == 3
    assert "nothing in it is ever replaced" in again.output
    assert run("init", "--dir", authority).exit_code == 3
    assert ((authority / "ca.key").read_bytes(), (out / "key.pem").read_bytes()) == before


def test_nothing_half_done_stays(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        new_folder(tmp_path / "x", {"a": b"1", "b": None})  # type: ignore[dict-item]
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "y").mkdir()
    (tmp_path / "y/mine").write_text("")
    with pytest.raises(Present):
        new_folder(tmp_path / "y", {"a": b"1"})
    assert [path.name for path in tmp_path.rglob("*")] == ["y", "mine"]


REFUSED = {
    "an unknown role": (("issue", "king", "x"), "'king' is no role"),
    "a pattern of hosts": (("issue", "zkfc", "x", "--host", "*.example"), "never for a pattern"),
    "a long life": (("issue", "zkfc", "x", "--days", "91"), "unless --long-lived"),
    "a name with a slash": (("issue", "zkfc", "x/y"), "is no name"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_certified(authority: Path, case: str) -> None:
    words, expected = REFUSED[case]
    made = run(*words, "--dir", authority, "--out", authority.parent / "leaf")
    assert made.exit_code == 3
    assert expected in made.output
    assert not (authority.parent / "leaf").exists()


def test_a_signature_takes_nothing_from_the_request(authority: Path, tmp_path: Path) -> None:
    assert run("request", "--out", tmp_path / "node").exit_code == 0
    words = ("sign", tmp_path / "node/request.pem", "--role", "zkfc", "--name", "nn2")
    made = run(*words, "--dir", authority, "--out", tmp_path / "signed")
    assert made.exit_code == 0, made.output
    (tmp_path / "signed/key.pem").write_bytes((tmp_path / "node/key.pem").read_bytes())
    (tmp_path / "signed/key.pem").chmod(0o600)
    assert problems_of(tmp_path / "signed") == []
    assert parse((tmp_path / "signed/cert.pem").read_bytes()).uri == "nnha://c1/zkfc/nn2"


def test_the_authority_changes_in_three_steps(authority: Path) -> None:
    out, _ = issued(authority)
    old = (out / "cert.pem").read_bytes(), (out / "key.pem").read_bytes()
    assert run("rotate", "--dir", authority, "--ca", "--step", "2").exit_code != 0
    assert run("rotate", "--dir", authority, "--ca", "--step", "1").exit_code == 0
    early = run("rotate", "--dir", authority, "--ca", "--step", "3")
    assert "step 2 was not taken" in early.output
    assert run("rotate", "--dir", authority, "--ca", "--step", "2", "--unchecked").exit_code == 0
    assert run("rotate", "--dir", authority, "--out", out).exit_code == 0
    assert problems_of(out) == []
    assert run("rotate", "--dir", authority, "--ca", "--step", "3", "--unchecked").exit_code == 0
    assert run("rotate", "--dir", authority, "--out", out).exit_code == 0
    assert problems_of(out) == []
    (out / "cert.pem").write_bytes(old[0])
    (out / "key.pem").write_bytes(old[1])
    assert "signed by none of the authorities" in problems_of(out)[0]


def test_an_unmatched_pair_is_told(authority: Path) -> None:
    out, _ = issued(authority)
    before = (out / "key.pem").read_bytes()
    assert run("rotate", "--dir", authority, "--out", out).exit_code == 0
    (out / "key.pem").write_bytes(before)
    assert problems_of(out) == ["key and certificate are not of one pair"]


def test_a_clock_that_is_behind_is_told_with_both_times(tmp_path: Path) -> None:
    late = now() + timedelta(minutes=10)
    made = new_authority("c1", late)
    pair = issue(made, CertificateRequest(CertifiedName("c1", Role.ZKFC, "nn1"), (), 7), late)
    files = {"ca.pem": made.certificate, "cert.pem": pair.certificate, "key.pem": pair.key}
    new_folder(tmp_path / "leaf", files)
    (problem,) = problems_of(tmp_path / "leaf")
    assert "not yet valid: it begins at" in problem
    assert "this machine's clock says" in problem


def test_a_certificate_that_ends_soon_is_told(tmp_path: Path) -> None:
    early = now() - timedelta(days=6)
    made = new_authority("c1", early)
    pair = issue(made, CertificateRequest(CertifiedName("c1", Role.ZKFC, "nn1"), (), 7), early)
    files = {"ca.pem": made.certificate, "cert.pem": pair.certificate, "key.pem": pair.key}
    new_folder(tmp_path / "leaf", files)
    for command in ("check", "show"):
        assert run(command, tmp_path / "leaf").exit_code == 8
    assert "nnha security rotate renews it" in run("check", tmp_path / "leaf").output


def test_revocations_are_written_once(authority: Path) -> None:
    for word in ("0A:bC", "abc", "nnha://c1/zkfc/nn1"):
        assert run("revoke", word, "--dir", authority).exit_code == 0
    assert (authority / "revoked.txt").read_text() == "abc\nnnha://c1/zkfc/nn1\n"
    assert run("revoke", "nn1", "--dir", authority).exit_code == 3


def test_only_one_name_of_ours_counts() -> None:
    two = ["nnha://c1/zkfc/nn1", "nnha://c1/admin/nn1"]
    for uris in ([], two, ["nnha://c1/zkfc"], ["nnha://c1/king/x"], ["https://c1/zkfc/x"]):
        with pytest.raises(BadName):
            named_by(uris)
    assert named_by([two[0], "spiffe://x/y"]).role is Role.ZKFC


def test_no_step_is_taken_that_a_daemon_could_not_live_with(authority: Path) -> None:
    old = fingerprints((authority / "ca.pem").read_bytes())[0]
    change = AuthorityChange(authority)
    change.take(1)
    new, still = fingerprints((authority / "ca.pem").read_bytes())
    assert still == old
    ready = Held("namenode nn1", trusts=(new, old), signed_by=new)
    change.require_ready(3, [ready])
    cases = {
        "it does not trust": Held("zkfc nn1", trusts=(old,), signed_by=old),
        "not running": Held("zkfc nn1", error="not running"),
    }
    for expected, daemon in cases.items():
        with pytest.raises(NotReady, match=f"zkfc nn1: {expected}"):
            change.require_ready(2, [ready, daemon])
    unrenewed = Held("journalnode jn1:8485", trusts=(new, old), signed_by=old)
    change.require_ready(2, [ready, unrenewed])
    with pytest.raises(NotReady, match="journalnode jn1:8485: its certificate is still signed by"):
        change.require_ready(3, [ready, unrenewed])


def test_a_step_without_a_configuration_is_refused(authority: Path) -> None:
    assert run("rotate", "--dir", authority, "--ca", "--step", "1").exit_code == 0
    before = (authority / "ca.key").read_bytes()
    made = run("rotate", "--dir", authority, "--ca", "--step", "2", "--conf-dir", authority)
    assert made.exit_code == 2, made.output
    assert (authority / "ca.key").read_bytes() == before


def test_a_page_that_is_no_address_is_refused() -> None:
    made = run("show", "--also", "dn1/9864", "-D", "fs.defaultFS=hdfs://ns1")
    assert made.exit_code == 2, made.output
    assert "--also 'dn1/9864': must be host:port" in made.output


def test_what_was_done_with_an_authority_is_written_beside_it(authority: Path) -> None:
    issued(authority)
    run("issue", "king", "x", "--dir", authority, "--out", authority.parent / "other")
    run("revoke", "abc", "--dir", authority)
    run("rotate", "--dir", authority, "--ca", "--step", "1")
    lines = [json.loads(line) for line in (authority / "audit.log").read_text().splitlines()]
    assert [(one["action"], one["target"], one["outcome"]) for one in lines] == [
        ("security init", "c1", "done"),
        ("security issue", "namenode/nn1", "done"),
        ("security issue", "king/x", "refused"),
        ("security revoke", "abc", "done"),
        ("security rotate --ca", "step 1", "done"),
    ]
    assert {one["uid"] for one in lines} == {os.getuid()}
    assert stat.S_IMODE((authority / "audit.log").stat().st_mode) & 0o007 == 0


async def test_certificates_that_end_soon_are_told(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "tls")
    old = now() - timedelta(hours=20)
    folder = authority.issue(Role.ADMIN, "root", days=1, at=old, folder="admin")
    given = configured(tmp_path, nnha_security_tls_dir=str(tmp_path / "tls"))
    first, second = check_security(given)
    assert (first.check, first.verdict) == ("certificate", Severity.FAIL)
    assert f"{folder}: it ends at " in first.found
    assert second.verdict is Severity.OK


async def test_status_tells_whose_certificate_ends_soon(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    old = now() - timedelta(hours=20)
    server = TlsFiles(authority.issue(Role.ZKFC, "nn1", days=1, at=old), 10)
    caller = authority.holder(Role.ADMIN, "root")
    assert caller.ending() == ()
    shown = server.material.pair.certificate
    assert caller.why_no_server(shown, Role.ZKFC) == ""
    with acting_as(caller):
        (told,) = ending_certificates()
    assert told.startswith("the certificate of zkfc nn1 ends at ")
    view = dataclasses.replace(WELL, certificates=(told,))
    assert told in problems(view)
    assert told in {one.found for one in check_cluster(view)}


def person(authority: Path, role: str = "operator") -> Path:
    out = authority.parent / role
    assert run("issue", role, "alice", "--dir", authority, "--out", out).exit_code == 0
    return out


def test_a_browsers_file_has_key_certificate_and_authority_under_the_password(
    authority: Path,
) -> None:
    folder, out = person(authority), authority.parent / "alice.p12"
    words = authority.parent / "password"
    words.write_text("a word\nand no other\n")
    before = os.umask(0)
    try:
        made = run("pkcs12", folder, "--out", out, "--password-file", words)
    finally:
        os.umask(before)
    assert made.exit_code == 0, made.output
    assert "a word" not in made.output
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    key, certificate, more = pkcs12.load_key_and_certificates(out.read_bytes(), b"a word")
    assert key is not None
    assert certificate is not None
    assert key.public_key() == certificate.public_key()
    assert parse(certificate.public_bytes(Encoding.PEM)).uri == "nnha://c1/operator/alice"
    assert [one.public_bytes(Encoding.PEM) for one in more] == [(folder / "ca.pem").read_bytes()]
    with pytest.raises(ValueError, match="password"):
        pkcs12.load_key_and_certificates(out.read_bytes(), b"and no other")
    again = run("pkcs12", folder, "--out", out, "--password-file", words)
    assert (again.exit_code, "there already" in again.output) == (3, True)


PKCS12_REFUSALS = {
    "no terminal": ("operator", None, 2, "--password-file FILE"),
    "an empty password": ("operator", "\nlater", 3, "begins with an empty line"),
    "a daemon's key": ("zkfc", "x", 3, "certificate of zkfc alice"),
    "no password file": ("operator", "", 4, "No such file"),
}


@pytest.mark.parametrize("case", PKCS12_REFUSALS)
def test_no_browsers_file_is_made(case: str, authority: Path) -> None:
    role, password, code, text = PKCS12_REFUSALS[case]
    words, out = authority.parent / "password", authority.parent / "alice.p12"
    if password:
        words.write_text(password)
    more = () if password is None else ("--password-file", words)
    made = run("pkcs12", person(authority, role), "--out", out, *more)
    assert made.exit_code == code, made.output
    assert text in made.output
    assert not out.exists()
