"""Hadoop's daemons and ours in one cluster with Kerberos, with a kill of the active in each."""

import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.local.cluster.cluster import zkfc_of
from deploy.local.cluster.layout import JOURNALNODES, NAMENODES
from deploy.local.cluster.processes import http_get, wait_until
from deploy.local.demo.screen import Screen
from deploy.local.workload.trial import other
from tests.ha.security.kdc import Kdc, running_kdc
from tests.interop.mixed.campaign import Campaign
from tests.interop.mixed.client import writing
from tests.interop.mixed.cluster import MixedCluster
from tests.interop.mixed.played import PAUSE_SECONDS, ensure_well
from tests.interop.mixed.programs import Kind
from tests.interop.mixed.roles import RoleWatch
from tests.interop.mixed.secured import KEYTAB, WEB_HOSTS, secured_cluster
from tests.needs import HADOOP_SERVER, KDC, OTHER_USER

OURS, HADOOP = Kind.OURS, Kind.HADOOP
SECONDS = 120.0
CHECKPOINTS = {
    "dfs.namenode.checkpoint.txns": "200",
    "dfs.namenode.checkpoint.check.period": "1s",
    "dfs.namenode.checkpoint.period": "10s",  # ours offers one that often after a refusal
    "dfs.qjournal.new-epoch.timeout.ms": "5000",
}
LIFE_SECONDS = 20.0
SERVICES = ("nn/localhost", "jn/localhost", "dn/localhost")
RENEWED = {"hadoop.kerberos.min.seconds.before.relogin": "1"}
pytestmark = [
    pytest.mark.interop, pytest.mark.long, pytest.mark.timeout(900),
    KDC.mark, HADOOP_SERVER.mark, OTHER_USER.mark,
]  # fmt: skip

# JournalNodes, NameNodes, ZKFCs, and single parts of another kind
COMBINATIONS: Mapping[str, tuple[Kind, Kind, Kind, Mapping[str, Kind]]] = {
    "our JournalNodes": (OURS, HADOOP, HADOOP, {}),
    "our ZKFCs": (HADOOP, HADOOP, OURS, {}),
    "our JournalNodes and ZKFCs": (OURS, HADOOP, OURS, {}),
    "a NameNode of each": (OURS, HADOOP, OURS, {"nn2": OURS}),
    "our NameNodes under Hadoop's ZKFCs": (OURS, OURS, HADOOP, {}),
    "one of each": (OURS, HADOOP, OURS, {"jn1": HADOOP, zkfc_of("nn2"): HADOOP}),
}


def log_of(cluster: MixedCluster, name: str) -> str:
    return cluster.supervisor.processes[name].log.read_text(errors="replace")


def bytes_of_segments(cluster: MixedCluster) -> float:
    """Return how much JournalNodes of ours have sent of segments; Hadoop's need tickets for it."""
    found = 0.0
    for name in JOURNALNODES:
        if cluster.kinds[name] is OURS:
            url = f"{cluster.programs.journal_url(name)}/metrics"
            _, page = http_get(url, deadline_seconds=SECONDS) or (0, b"")
            sent = re.findall(rb"^nnha_jn_served_bytes_total\S* (\S+)$", page, re.MULTILINE)
            found += sum(float(each) for each in sent)
    return found


@pytest.mark.parametrize("which", COMBINATIONS)
def test_nothing_is_lost_when_the_active_is_killed(
    realm: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    journalnodes, namenodes, zkfcs, others = COMBINATIONS[which]
    with secured_cluster(realm, tmp_path, CHECKPOINTS, monkeypatch) as cluster:
        cluster.up(journalnodes=journalnodes, namenodes=namenodes, zkfcs=zkfcs, others=others)
        addresses = {name: cluster.address(name) for name in NAMENODES}
        with (
            writing(cluster, pause_seconds=PAUSE_SECONDS) as client,
            RoleWatch(addresses) as roles,
        ):
            played = Campaign(cluster, client, roles, Screen.on_stderr_if(True))
            played.play(kills=1, hand_overs=0)
            if which == "a NameNode of each":
                images_go_both_ways(cluster, played)
            if journalnodes is OURS:
                assert bytes_of_segments(cluster) > 0
            ensure_well(played)


def images_go_both_ways(cluster: MixedCluster, played: Campaign) -> None:
    """Wait until each of the two, as a standby, has sent an image to the other one."""

    def sent() -> bool:
        if cluster.kinds[standby] is OURS:
            return '"answer": "ACCEPTED"' in log_of(cluster, standby)
        return "Uploaded image with txid" in log_of(cluster, standby)

    standby = other(cluster.active())
    wait_until(sent, what=f"an image of {standby}", deadline_seconds=SECONDS)
    played.play(kills=1, hand_overs=0)
    standby = other(cluster.active())
    wait_until(sent, what=f"an image of {standby}", deadline_seconds=SECONDS)


@contextmanager
def fetched_again(kdc: Kdc, name: str) -> Iterator[None]:
    """Keep a person's tickets fresh, as ``k5start`` does; programs that run read them anew."""
    ended = threading.Event()

    def fetch() -> None:
        while not ended.wait(LIFE_SECONDS / 4):
            kdc.kinit(name)

    thread = threading.Thread(target=fetch)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("which", COMBINATIONS)
def test_nothing_is_lost_while_tickets_end_and_keys_are_rolled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    journalnodes, namenodes, zkfcs, others = COMBINATIONS[which]
    life = f"{LIFE_SECONDS:g}s"
    with running_kdc(tmp_path / "kdc", ticket_lifetime=life, clock_skew_seconds=10) as kdc:
        for name, value in kdc.environment.items():
            monkeypatch.setenv(name, value)
        folder = tmp_path / "cluster"
        folder.mkdir()
        with (
            secured_cluster(kdc, folder, CHECKPOINTS | RENEWED, monkeypatch) as cluster,
            fetched_again(kdc, "nn/localhost"),
        ):
            cluster.up(journalnodes=journalnodes, namenodes=namenodes, zkfcs=zkfcs, others=others)
            addresses = {name: cluster.address(name) for name in NAMENODES}
            with (
                writing(cluster, pause_seconds=PAUSE_SECONDS) as client,
                RoleWatch(addresses) as roles,
            ):
                played = Campaign(cluster, client, roles, Screen.on_stderr_if(True))
                keytabs = {
                    kdc.folder / KEYTAB: [f"HTTP/{host}" for host in WEB_HOSTS],
                    **{kdc.keytab(name): [name] for name in SERVICES},
                }
                for keytab, names in keytabs.items():
                    kdc.add_keys(keytab, *names)
                rolled = time.monotonic()
                played.play(kills=1, hand_overs=0)
                wait_until(
                    lambda: time.monotonic() > rolled + LIFE_SECONDS,
                    what="tickets to end",
                    deadline_seconds=SECONDS,
                )
                for keytab, names in keytabs.items():
                    kdc.drop_old_keys(keytab, *names)
                played.play(kills=1, hand_overs=0)
                ensure_well(played)
