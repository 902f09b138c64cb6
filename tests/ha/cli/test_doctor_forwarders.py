"""nnha doctor warns of programs that forward strangers' connections under a trusted user."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from deploy.local.cluster.processes import wait_until
from ha.cli.explain.doctor.forwarders import check_forwarders
from ha.conf.configuration import Configuration, load_configuration
from tests.ha.cli.conftest import PORTS
from tests.ha.cli.stand_ins import write_configuration
from tests.needs import STRANGER

RPC = PORTS["rpc-nn1"]


def configured(folder: Path, **more: str) -> Configuration:
    write_configuration(folder, PORTS, **{key.replace("_", "."): one for key, one in more.items()})
    return load_configuration(folder, environment={})


def seen(processes: Path, *lines: Sequence[str], uid: int | None = None) -> Path:
    for number, words in enumerate(lines, 100):
        folder = processes / str(number)
        folder.mkdir(parents=True)
        (folder / "cmdline").write_text("\0".join(words) + "\0")
        if uid is not None:
            os.chown(folder, uid, uid)
    (processes / "self").mkdir()
    (processes / "99").mkdir()  # it has ended
    return processes


FORWARD = {
    "docker": (
        "/usr/bin/docker-proxy", "-proto", "tcp", "-host-port", str(RPC), "-container-port", "1",
    ),
    "socat": ("socat", "TCP-LISTEN:1,fork", f"TCP:127.0.0.1:{RPC}"),
    "kubectl": ("kubectl", "port-forward", "pod/nn1-0", f"8020:{RPC}"),
    "ssh to here": ("ssh", "-N", "-L", f"0.0.0.0:1:127.0.0.1:{RPC}", "hdfs@host"),
    "ssh from there": ("/usr/bin/ssh", "-fNR", f"1:localhost:{RPC}", "host"),
}  # fmt: skip
NO_FORWARD = {
    "another port": ("socat", "TCP-LISTEN:60001,fork", f"TCP:127.0.0.1:{RPC}0"),
    "a command over ssh": ("ssh", "host", "nc", "-z", "localhost", str(RPC)),
    "kubectl that looks": ("kubectl", "get", "pods", f"--port={RPC}"),
    "a daemon": ("python", "-m", "ha.cli.main", "namenode", f"dfs.x={RPC}"),
}


@pytest.mark.parametrize("case", FORWARD)
def test_a_forwarding_program_of_a_trusted_user_is_named(tmp_path: Path, case: str) -> None:
    processes = seen(tmp_path / "proc", FORWARD[case])
    (found,) = check_forwarders(configured(tmp_path), "ns1", processes=processes, environment={})
    name = Path(FORWARD[case][0]).name
    assert found.found == (
        f"{name} (process 100, uid {os.geteuid()}) names port {RPC} of a daemon: whoever reaches "
        f"it is uid {os.geteuid()} for that daemon"
    )


@pytest.mark.parametrize("case", NO_FORWARD)
def test_other_programs_are_not(tmp_path: Path, case: str) -> None:
    processes = seen(tmp_path / "proc", NO_FORWARD[case])
    configuration = configured(tmp_path)
    assert not list(check_forwarders(configuration, "ns1", processes=processes, environment={}))


@pytest.mark.skipif(os.geteuid() != 0, reason="a folder is given to another user")
def test_nor_those_of_other_users(tmp_path: Path) -> None:
    processes = seen(tmp_path / "proc", *FORWARD.values(), uid=STRANGER)
    configuration = configured(tmp_path)
    assert not list(check_forwarders(configuration, "ns1", processes=processes, environment={}))


def test_a_pod_is_named_unless_certificates_are_demanded(tmp_path: Path) -> None:
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    processes = seen(tmp_path / "proc", *FORWARD.values())
    first, *others = check_forwarders(
        configured(tmp_path), "ns1", processes=processes, environment=pod
    )
    assert first.found.startswith("this is a pod: whoever may kubectl port-forward to it")
    assert len(others) == len(FORWARD)
    strict = configured(tmp_path, nnha_security_mode="strict", nnha_security_tls_dir="/x")
    assert not list(check_forwarders(strict, "ns1", processes=processes, environment=pod))


def test_a_program_that_runs_is_seen(tmp_path: Path) -> None:
    """Start one under such a name: what the kernel shows of it is what is looked for."""
    program = tmp_path / "socat"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "600", str(RPC)]) as running:
        try:
            # It has no command line yet while it is being loaded.
            wait_until(
                lambda: [
                    one
                    for one in check_forwarders(configured(tmp_path), "ns1", environment={})
                    if f"process {running.pid}," in one.found
                ],
                what="it is not seen", deadline_seconds=30.0,
            )  # fmt: skip
        finally:
            running.kill()
