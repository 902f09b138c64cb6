"""A cluster with certificates: it works, and a revoked controller loses the lock."""

import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from deploy.local.cluster.certificates import authority_folder, tls_folder
from deploy.local.cluster.cluster import Cluster, open_cluster
from deploy.local.cluster.processes import http_get, wait_until
from ha.conf.own_user import system_user
from ha.security.caller import Role
from ha.security.certificate_files import CERT, KEY, REVOKED, read_authority, replace
from ha.security.certificates import CertificateRequest, issue, now
from ha.security.names import CertifiedName
from tests.cluster.flood_scene import (
    fails_over_in_a_flood,
    grpc_ports,
    http_ports,
    lane_ports,
    rpc_ports,
)
from tests.deploy.monitoring.documented import CERTIFICATES, section
from tests.needs import OTHER_USER
from tests.security.floods import HALF_HANDSHAKE

pytestmark = pytest.mark.cluster

SECONDS = 60.0
CHECK = {"nnha.security.tls.check-interval": "500ms"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("secure")
    with open_cluster(folder, secure=True, more_keys=CHECK) as running:
        running.up()
        yield running
        running.down()


def nnha(cluster: Cluster, *words: str) -> str:
    """Return what one of our commands prints; it must end well."""
    command = [sys.executable, "-m", "ha.cli.main", *words, "--conf-dir", str(cluster.conf_dir)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_commands_reach_all_daemons_of_a_cluster_with_certificates(cluster: Cluster) -> None:
    assert "3 of 3 nodes serve and vote" in nnha(cluster, "journal", "status")
    shown = nnha(cluster, "status")
    assert shown.count("in sync") == 3
    log = cluster.logs()["jn1"].read_text()
    assert '"method": "tls", "roles": ["namenode"]' in log
    assert "journal.lane_opened" in log


def test_safe_mode_is_shown_entered_and_left_with_certificates(cluster: Cluster) -> None:
    active = cluster.wait_for_active()
    shown = nnha(cluster, "safemode", "enter", "--yes")
    assert "safe mode is on at nn1, nn2" in shown
    assert f"{active}  on: " in nnha(cluster, "safemode", "get", active)
    assert "off at nn1, nn2" in nnha(cluster, "safemode", "leave", "--yes")
    assert f"off at {active}" in nnha(cluster, "safemode", "wait", active)


def test_a_client_is_the_user_in_its_certificate_and_no_other(
    cluster: Cluster, tmp_path: Path
) -> None:
    """In strict mode, over TLS; without a certificate the kernel proves the process's own user."""
    authority, own = str(authority_folder(cluster.layout)), str(tmp_path / "client")
    words = ("security", "issue", "client", "alice", "--dir", authority, "--out", own)
    subprocess.run([sys.executable, "-m", "ha.cli.main", *words], check=True, timeout=SECONDS)
    nnha(cluster, "fs", "mkdir", "-p", "/user/alice")
    nnha(cluster, "fs", "chown", "alice", "/user/alice")

    def fs(user: str, tls: Path, *words: str) -> tuple[int, str]:
        head = [sys.executable, "-m", "ha.cli.main", "fs", words[0], *words[1:]]
        tail = ["--conf-dir", str(cluster.conf_dir), "-D", f"nnha.security.tls.dir={tls}"]
        done = subprocess.run(
            [*head, *tail], capture_output=True, text=True, timeout=SECONDS, check=False,
            env={**os.environ, "HADOOP_USER_NAME": user},
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    assert fs("alice", tmp_path, "mkdir", "mine") == (0, "")
    code, text = fs("alice", tmp_path, "mkdir", "/hers")
    assert (code, "Permission denied: user=alice" in text) == (7, True), text
    code, text = fs("bob", tmp_path, "ls", "/")
    assert (code, "user bob is not alice, for whom the caller's certificate is" in text) == (
        7,
        True,
    ), text
    code, text = fs(system_user(), tmp_path / "none", "ls", "-d", "/user/alice/mine")
    assert (code, " alice " in text) == (0, True), text


def test_a_certificate_that_ends_on_one_host_is_named_before_and_after(cluster: Cluster) -> None:
    """Check status, doctor, and what the alert watches; its connections end with it."""
    folder = tls_folder(cluster.layout, "jn3")
    wish = CertificateRequest(
        CertifiedName("local", Role.JOURNALNODE, "jn3"), ("localhost", "127.0.0.1"), LIFE
    )
    pair = issue(read_authority(authority_folder(cluster.layout)), wish, now() - AGE)
    replace(folder, {CERT: pair.certificate, KEY: pair.key})
    for command in ("status", "doctor"):
        wait_until(
            partial(names_it, cluster, command),
            what=f"{command} to name the certificate",
            deadline_seconds=SECONDS,
        )
    assert life_left(cluster) < 0.25
    wait_until(lambda: life_left(cluster) < 0, what="its end", deadline_seconds=SECONDS)
    address = f"127.0.0.1:{cluster.layout.journalnodes['jn3'].rpc}"
    for command in ("status", "doctor"):
        text = said(cluster, command)
        assert re.search(f"{address}.*(certificate has expired|certificate.*ended)", text), text
    authority = str(authority_folder(cluster.layout))
    nnha(cluster, "security", "rotate", "--dir", authority, "--out", str(folder))
    wait_until(
        lambda: said(cluster, "status").count("in sync") == 3,
        what="jn3 to take part again",
        deadline_seconds=SECONDS,
    )


LIFE = (600 + 25) / 86_400
AGE = timedelta(minutes=10)
"""So that it has 25 s left of its life, which began some minutes earlier for slow clocks."""


def names_it(cluster: Cluster, command: str) -> bool:
    return "the certificate of journalnode jn3 end" in said(cluster, command)


def said(cluster: Cluster, command: str) -> str:
    """Return what a command prints, in wide lines, however it ends."""
    words = [sys.executable, "-m", "ha.cli.main", command, "--conf-dir", str(cluster.conf_dir)]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=SECONDS, check=False,
        env={**os.environ, "COLUMNS": "400"},
    )  # fmt: skip
    return done.stdout + done.stderr


def life_left(cluster: Cluster) -> float:
    """Return it as NnhaCertificateEndsSoon counts it; the page is open on this machine."""
    url = cluster.layout.url("jn3") + "/metrics"
    with urllib.request.urlopen(url, timeout=30) as answer:
        page = answer.read().decode()
    after = float(re.findall(r'not_after_seconds\{what="certificate"\} (\S+)', page)[0])
    before = float(
        re.findall(r"^nnha_tls_certificate_not_before_seconds (\S+)", page, re.MULTILINE)[0]
    )
    return (after - now().timestamp()) / (after - before)


@OTHER_USER.mark
def test_half_handshakes_stop_neither_clients_nor_a_failover(cluster: Cluster) -> None:
    of_tls = [*rpc_ports(cluster), *http_ports(cluster).values(), *grpc_ports(cluster)]
    targets = [(port, HALF_HANDSHAKE) for port in (*of_tls, *lane_ports(cluster))]
    full = {"nn1": "opening", "zkfc-nn2": "opening", "jn1": "grpc", "jn2": "lane"}
    fails_over_in_a_flood(cluster, targets, full)


def test_the_lock_moves_when_the_holder_of_the_lock_is_revoked(cluster: Cluster) -> None:
    active = cluster.wait_for_active()
    other = next(name for name in cluster.layout.namenodes if name != active)
    cluster.wait_for_ready_standby(other)
    for name in (active, other):
        line = f"nnha://local/zkfc/{active}\n".encode()
        replace(tls_folder(cluster.layout, name), {REVOKED: line})
    wait_until(
        lambda: other in cluster.active_namenodes(),
        what=f"{other} to become active in place of {active}",
        deadline_seconds=SECONDS,
    )
    log = cluster.logs()[active].read_text()
    assert f"this certificate, of zkfc {active}, was revoked" in log


def test_daemons_show_when_their_certificates_end(cluster: Cluster) -> None:
    page = nnha_page(cluster.layout.url("nn1") + "/metrics")
    shown = dict(re.findall(r"^# TYPE (nnha_tls_\w+) (\w+)$", page, re.MULTILINE))
    rows = re.findall(r"^\| `(nnha_\w+)` \| (\w+) \|", section(CERTIFICATES), re.MULTILINE)
    assert shown == dict(rows)
    assert 'nnha_tls_certificate_not_after_seconds{what="certificate"} 1.' in page


def nnha_page(url: str) -> str:
    """Return a page, asked for under the administrator's certificate."""
    answer = http_get(url, deadline_seconds=30)
    assert answer is not None
    assert answer[0] == 200
    return answer[1].decode()


def test_the_kernels_word_opens_no_page_in_strict(cluster: Cluster) -> None:
    url = cluster.layout.url("nn1")
    for page, expected in (("/livez", 200), ("/metrics", 200), ("/status", 403)):
        try:
            with urllib.request.urlopen(url + page, timeout=30) as answer:
                found = answer.status
        except urllib.error.HTTPError as refused:
            found = refused.code
        assert found == expected, page
