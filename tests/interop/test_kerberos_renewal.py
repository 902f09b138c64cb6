"""Tickets that end and keys that are rolled while a cluster of ours serves Hadoop's client.

The KDC's tickets are good for seconds, and servers take none that has ended (``clockskew``).
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from deploy.local.cluster.cluster import Cluster, open_cluster
from deploy.local.cluster.processes import wait_until
from tests.ha.security.kdc import REALM, Kdc, running_kdc
from tests.interop.hadoop_server import JavaObject, running_hadoop
from tests.interop.our_cluster import OurCluster, programs_on
from tests.interop.test_kerberos import keys
from tests.needs import HADOOP_SERVER, KDC

pytestmark = [pytest.mark.interop, pytest.mark.cluster, KDC.mark, HADOOP_SERVER.mark]

SECONDS: Final = 60.0
LIFE_SECONDS: Final = 5.0
ROLLED: Final = ("nn/localhost", "jn/localhost", "dn/localhost", "alice", "bob")
RENEWED_BY_HADOOP: Final[Mapping[str, str]] = {
    "hadoop.kerberos.keytab.login.autorenewal.enabled": "true",
    "hadoop.kerberos.min.seconds.before.relogin": "1",
}
TROUBLE: Final = ("kerberos.not_renewed", "no Kerberos tickets", "Ticket expired", "kvno")
"""What logs say where tickets were not renewed, or a keytab lacks the key of a ticket."""


@pytest.fixture
def short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kdc]:
    life = f"{LIFE_SECONDS:g}s"
    with running_kdc(tmp_path / "kdc", ticket_lifetime=life, clock_skew_seconds=4) as kdc:
        for name, value in kdc.environment.items():
            monkeypatch.setenv(name, value)
        yield kdc


@contextmanager
def served(kdc: Kdc, folder: Path) -> Iterator[OurCluster]:
    # Connections that stay open protect messages beyond the end of the tickets that began them.
    more = keys(kdc) | {"hadoop.rpc.protection": "privacy"}
    cluster = open_cluster(folder / "cluster", datanodes=1, more_keys=more)
    (folder / "hadoop").mkdir()
    with cluster, running_hadoop(folder / "hadoop") as hadoop:
        hadoop.gateway.jvm.java.lang.System.setProperty(
            "java.security.krb5.conf", str(kdc.krb5_conf)
        )
        cluster.up()
        with programs_on(cluster, hadoop) as made:
            yield made


def nnha(cluster: Cluster, kdc: Kdc, name: str, *words: str) -> str:
    """Run a command of ours as a person with a fresh ticket; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "ha.cli.main", *words],
        env={
            **os.environ,
            "HADOOP_CONF_DIR": str(cluster.conf_dir),
            "KRB5CCNAME": str(kdc.kinit(name)),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def live(client: JavaObject, began: float, lives: float) -> None:
    """Wait until that many lives of tickets have gone by since a time, and for files after it."""
    wait_until(
        lambda: time.monotonic() - began > lives * LIFE_SECONDS,
        what="tickets to end",
        deadline_seconds=SECONDS,
    )
    more(client)


def more(client: JavaObject) -> None:
    """Wait for more files, which the writer does not give up."""
    before = client.count()
    wait_until(
        lambda: client.count() >= before + 5, what="more files", deadline_seconds=SECONDS,
        abandon=client.trouble,
    )  # fmt: skip


def kill_the_active(cluster: Cluster, client: JavaObject) -> None:
    """Kill it, wait for files that its successor has taken, and start it again."""
    (active,) = cluster.active_namenodes()
    cluster.kill(active)
    more(client)
    assert cluster.active_namenodes() != [active]
    cluster.start(active)
    cluster.wait_for_ready_standby(active, deadline_seconds=SECONDS)


def test_tickets_end_and_keys_are_rolled_while_files_are_written(
    short: Kdc, tmp_path: Path
) -> None:
    with served(short, tmp_path) as ours:
        cluster, conf = ours.cluster, ours.configuration(RENEWED_BY_HADOOP)
        nnha(cluster, short, "nn/localhost", "fs", "mkdir", "/load")
        nnha(cluster, short, "nn/localhost", "fs", "chmod", "777", "/load")
        client = ours.hadoop.compiled("nnha.RenewedClient")
        client.begin(conf, f"alice@{REALM}", str(short.keytab("alice")), "/load")
        began = time.monotonic()
        live(client, began, 1.1)
        for name in ROLLED:
            short.add_keys(short.keytab(name), name)
        rolled = time.monotonic()
        more(client)
        kill_the_active(cluster, client)
        assert "active" in nnha(cluster, short, "bob", "haadmin", "-getAllServiceState")
        live(client, rolled, 1.1)
        for name in ROLLED:
            short.drop_old_keys(short.keytab(name), name)
        more(client)
        (active,) = cluster.active_namenodes()
        (standby,) = set(cluster.layout.namenodes) - {active}
        nnha(cluster, short, "bob", "haadmin", "-failover", active, standby)
        more(client)
        assert client.lost(conf, "/load") == ""
        for name, log in cluster.logs().items():
            said = [line for line in log.read_text().splitlines() if any(map(line.count, TROUBLE))]
            assert not said, f"{name}: {said}"
