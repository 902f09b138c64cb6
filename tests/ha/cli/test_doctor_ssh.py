"""nnha doctor of sshfence: keys and known hosts, opened as a fence would open them."""

from dataclasses import replace
from pathlib import Path

import pytest

from fencing.model import SshMethod
from fencing.ssh_settings import HostKeys, SshSettings
from ha.cli.explain.doctor import local
from ha.cli.explain.doctor.ssh import ssh_finding
from ha.cluster.check_result import Severity
from ha.conf.configuration import load_configuration
from ha.conf.topology import HostPort, NameNodeAddress
from tests.fencing.sshd import make_key, needs_sshd
from tests.ha.cli.conftest import PORTS
from tests.ha.cli.stand_ins import write_configuration

pytestmark = needs_sshd

AT = HostPort("192.0.2.7", 8020)
FAR = NameNodeAddress("ns1", "nn2", AT, AT, AT, AT, AT, AT)
METHOD = SshMethod("hdfs", 2222)


@pytest.fixture
def settings(tmp_path: Path) -> SshSettings:
    """Make a key and a file of known hosts with which nothing is wrong."""
    key = make_key(tmp_path / "key")
    public = Path(f"{key}.pub").read_text()
    known = tmp_path / "known"
    known.write_text(f"junk\n[192.0.2.7]:2222 {public}")
    return SshSettings(key_files=(key,), known_hosts=known)


def test_a_key_and_a_known_host_are_well(settings: SshSettings) -> None:
    assert ssh_finding("fencing", METHOD, FAR, settings).verdict is Severity.OK
    signed = settings.known_hosts.read_text().replace("[192", "@cert-authority [192")
    settings.known_hosts.write_text(signed)
    assert ssh_finding("fencing", METHOD, FAR, settings).verdict is Severity.OK


KEYS = {
    # what the key file becomes -> the verdict, and what is said
    "others may read it": (Severity.WARN, "others may read"),
    "it is gone": (Severity.FAIL, "No such file"),
    "it is a public key": (Severity.FAIL, "is a public key"),
    "it is encrypted": (Severity.FAIL, "nnha.fencing.ssh.passphrase-file"),
    "it is a folder": (Severity.FAIL, "Is a directory"),
}


@pytest.mark.parametrize("case", KEYS)
def test_a_key_of_no_use_is_named(settings: SshSettings, case: str) -> None:
    (key,) = settings.key_files
    match case:
        case "others may read it":
            key.chmod(0o644)
        case "it is a public key":
            key.write_text(Path(f"{key}.pub").read_text())
        case _:
            key.unlink()
    if case == "it is encrypted":
        Path(f"{key}.pub").unlink()
        make_key(key, passphrase="open sesame")
    if case == "it is a folder":
        key.mkdir()
    found = ssh_finding("fencing", METHOD, FAR, settings)
    verdict, said = KEYS[case]
    assert (found.verdict, str(key) in found.found) == (verdict, True), found
    assert said in found.found


def test_an_encrypted_key_is_well_with_its_passphrase(settings: SshSettings) -> None:
    key = make_key(settings.known_hosts.with_name("locked"), passphrase="open sesame")
    secret = settings.known_hosts.with_name("passphrase")
    how = replace(settings, key_files=(key,), passphrase_file=secret)
    for text, verdict in (("open sesame\n", Severity.OK), ("hunter2\n", Severity.FAIL)):
        secret.write_text(text)
        found = ssh_finding("fencing", METHOD, FAR, how)
        assert found.verdict is verdict
        assert "hunter2" not in str(found)
    secret.unlink()
    assert ssh_finding("fencing", METHOD, FAR, how).verdict is Severity.FAIL


def test_a_host_that_is_not_known_is_named_with_the_lines_that_were_skipped(
    settings: SshSettings,
) -> None:
    found = ssh_finding("fencing", SshMethod("hdfs", 22), FAR, settings)
    assert found.verdict is Severity.WARN
    assert "no key of 192.0.2.7; line 1 is no host key" in found.found
    assert found.next.startswith("ssh-keyscan -p 22 192.0.2.7 >> ")
    here = replace(FAR, service=HostPort("127.0.0.1", 8020))
    assert ssh_finding("fencing", METHOD, here, settings).verdict is Severity.OK, "never fenced"
    settings.known_hosts.unlink()
    assert ssh_finding("fencing", METHOD, FAR, settings).verdict is Severity.FAIL
    trusting = replace(settings, host_keys=HostKeys.ACCEPT_NEW)
    assert ssh_finding("fencing", METHOD, FAR, trusting).verdict is Severity.OK


def test_the_configuration_leads_to_these_checks(settings: SshSettings, tmp_path: Path) -> None:
    site = {
        "dfs.ha.fencing.methods": "sshfence",
        "dfs.ha.fencing.ssh.private-key-files": str(settings.key_files[0]),
        "nnha.fencing.ssh.known-hosts": str(settings.known_hosts),
    }
    write_configuration(tmp_path, PORTS, **site)
    configuration = load_configuration(tmp_path, environment={})
    verdicts = {one.verdict for one in local.check_fencing(configuration, "ns1")}
    assert verdicts == {Severity.OK}
    settings.key_files[0].write_text("secret")
    assert {one.verdict for one in local.check_fencing(configuration, "ns1")} == {Severity.FAIL}
