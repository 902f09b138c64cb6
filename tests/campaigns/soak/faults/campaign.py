"""One run: a cluster comes up, is struck again and again under its clients, and is judged."""

import contextlib
import json
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TextIO

from deploy.local.cluster.certificates import ADMIN
from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.java import find_java
from deploy.local.cluster.layout import JournalNodePorts, Layout
from deploy.local.cluster.processes import Supervisor, wait_until
from deploy.local.workload.audit import read_journal
from tests.campaigns.soak.faults import clients, file_clients, hosts
from tests.campaigns.soak.faults.certified import CLIENT, calling_under
from tests.campaigns.soak.faults.cluster import START_SECONDS, Cluster
from tests.campaigns.soak.faults.disks import Disks, Preloads
from tests.campaigns.soak.faults.draw import Draw
from tests.campaigns.soak.faults.faults import Fault
from tests.campaigns.soak.faults.fitness import Condition
from tests.campaigns.soak.faults.history import Call, read_calls
from tests.campaigns.soak.faults.nemesis import Nemesis
from tests.campaigns.soak.faults.network import Network
from tests.campaigns.soak.faults.nnha import url
from tests.campaigns.soak.faults.runs import registered
from tests.campaigns.soak.faults.strangers import let_in
from tests.campaigns.soak.faults.system import System
from tests.campaigns.soak.faults.watch import Watch

CLIENT_COUNT: Final = 8
READER_COUNT: Final = 3
FIRST_READER: Final = 100
CALLS_BEFORE: Final = 100
"""The first fault strikes when this number was answered, not while the clients still start."""
AUDIT_SECONDS: Final = 120.0
FILES_SECONDS: Final = 600.0
"""For calls on files to end, blocks to be copied, and all files to be read again."""
HISTORY: Final = "history.jsonl"
FAULTS: Final = "faults.jsonl"

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Round:
    """One round: what was struck, when it began and ended, how long until all was well."""

    faults: tuple[Fault, ...]
    began: float
    ended: float
    settle_seconds: float


@dataclass(slots=True)
class Played:
    """What a run leaves to be judged."""

    conditions: list[Condition]
    commands: Mapping[str, int]
    """How often each operator's command ended with which code."""
    looks: int
    claims: Mapping[int, set[str]]
    """The NameNodes that called themselves active in each epoch."""
    calls: list[Call]
    rounds: list[Round]
    skipped: Mapping[str, int]
    """Faults that were drawn and cannot be played here, by the reason."""
    ended: float
    journal_gaps: list[int]
    journal_forks: list[int]
    verify: str
    """What the system's own look at its journal says against it; empty for nothing."""
    let_in: list[str] = field(default_factory=list)
    """What strangers were let do to a cluster with certificates."""
    disturbed: list[str] = field(default_factory=list)
    """What an active that had been replaced did to its successor."""
    files: file_clients.Outcome | None = None
    """What came of calls on files, where there were any."""
    trouble: str = ""
    """Why the run was not played to its end."""
    revived: Mapping[str, int] = field(default_factory=dict)


def play(directory: Path, make: Callable[[Disks], System], draw: Draw, tell: Tell) -> Played:
    """Play what is drawn; what cannot be gone on with is in ``trouble``.

    Raises:
        LocalClusterError: if the cluster does not come up.
    """
    directory = directory.resolve()
    with (directory / FAULTS).open("w") as log, _standing(directory, make) as cluster:
        tell(f"logs, history and faults stay in {directory}")
        nemesis = Nemesis(cluster, _logger(log))
        cluster.system.configure(directory)
        with calling_under(_certificate(cluster.system, ADMIN)):
            cluster.up()
            took = cluster.wait_settled(START_SECONDS)
            tell(f"all processes are up and well, {took:.1f} s after the last one was started")
            with Watch().watching() as watch:
                return _played(cluster, nemesis, watch, draw, tell)


def _certificate(system: System, part: str) -> Path | None:
    return None if system.tls is None else system.tls / part


@contextlib.contextmanager
def _standing(directory: Path, make: Callable[[Disks], System]) -> Iterator[Cluster]:
    """Make hosts, disks and this process on the operators' host; nothing runs yet."""
    disks = Disks(directory)
    supervisor = Supervisor(directory)
    with registered(supervisor.mark, disks.mounts) as run_id:
        network = Network(run_id)
        network.up()
        disks.up()
        network.enter(hosts.OPERATORS)
        with supervisor:
            yield Cluster(
                network=network,
                disks=disks,
                preloads=Preloads.built(directory),
                supervisor=supervisor,
                java=find_java(wrapper_directory=directory),
                system=make(disks),
            )


def _played(cluster: Cluster, nemesis: Nemesis, watch: Watch, draw: Draw, tell: Tell) -> Played:
    directory = cluster.supervisor.directory
    plan = _begin_clients(cluster, draw.seed)
    filing = _begin_files(cluster, draw.seed) if cluster.system.datanodes else None
    done: list[Round] = []
    skipped: dict[str, int] = {}
    strangers: list[str] = []
    files = None
    trouble = ""
    nemesis.begin()
    try:
        for drawn in draw.rounds():
            if fit := _playable(cluster, drawn, skipped):
                done.append(_round(cluster, nemesis, fit))
                tell(_told(done, draw.count))
        cluster.supervisor.stop_together(("readers", "clients"))
        ended = time.monotonic()
        cluster.wait_settled(cluster.system.settle_seconds)
        _audit(cluster, plan)
        if filing is not None:
            files = _end_files(cluster, filing)
        if cluster.system.tls is not None:
            servers = (*hosts.JOURNALNODES, *hosts.NAMENODES, *cluster.system.datanodes)
            strangers = let_in(servers, url)
    except LocalClusterError as failure:
        trouble = str(failure)
        ended = time.monotonic()
        nemesis.log({"event": "trouble", "why": trouble})
    journal = read_journal(_layout(directory))
    return Played(
        conditions=nemesis.conditions,
        commands=nemesis.exit_codes,
        looks=watch.looks,
        claims=dict(watch.claims),
        calls=read_calls(directory / HISTORY),
        rounds=done,
        skipped=skipped,
        ended=ended,
        journal_gaps=journal.missing_txids,
        journal_forks=journal.diverging,
        verify="" if trouble else _verify(cluster),
        let_in=strangers,
        disturbed=nemesis.disturbed,
        files=files,
        trouble=trouble,
        revived=dict(cluster.revived),
    )


def _playable(
    cluster: Cluster, drawn: tuple[Fault, ...], skipped: dict[str, int]
) -> tuple[Fault, ...]:
    """Return those that can be played here; count the others, by the reason."""
    lacking = {**cluster.preloads.lacking, **cluster.system.lacking()}
    for fault in drawn:
        if fault.kind in lacking:
            reason = f"{fault.kind}: {lacking[fault.kind]}"
            skipped[reason] = skipped.get(reason, 0) + 1
    return tuple(fault for fault in drawn if fault.kind not in lacking)


def _round(cluster: Cluster, nemesis: Nemesis, drawn: tuple[Fault, ...]) -> Round:
    began = time.monotonic()
    nemesis.play(drawn)
    ended = time.monotonic()
    settled = cluster.wait_settled(cluster.system.settle_seconds)
    nemesis.log({"event": "settled", "seconds": round(settled, 3), "reasons": cluster.reasons})
    files = (hosts.FILE_CLIENTS,) if cluster.system.datanodes else ()
    for name in ("clients", "readers", *files):
        if (ended_early := cluster.process(name).ended_early()) is not None:
            raise LocalClusterError(f"clients have ended: {ended_early}")
    return Round(drawn, began, ended, settled)


def _audit(cluster: Cluster, plan: clients.Plan) -> None:
    """Read every path that was ever asked for, once all is well again."""
    process = cluster.run_on(hosts.CLIENTS, "audit", clients.argv(replace(plan, audit=True)))
    wait_until(
        lambda: not process.running,
        what="the clients to read all paths again",
        deadline_seconds=AUDIT_SECONDS,
        poll_seconds=0.1,
    )
    if process.exit_code != 0:
        raise LocalClusterError(f"Read all paths again; {process.ended_early()}")


def _begin_clients(cluster: Cluster, seed: int) -> clients.Plan:
    directory = cluster.supervisor.directory
    plan = clients.Plan(
        seed=seed,
        clients=CLIENT_COUNT,
        servers=tuple((host, hosts.address(host), hosts.NAMENODE_PORT) for host in hosts.NAMENODES),
        root="/faults",
        history=str(directory / HISTORY),
        certificate=str(_certificate(cluster.system, CLIENT) or ""),
    )
    cluster.run_on(hosts.CLIENTS, "clients", clients.argv(plan))
    reading = replace(plan, clients=READER_COUNT, first_client=FIRST_READER, reads_only=True)
    cluster.run_on(hosts.READERS, "readers", clients.argv(reading))
    wait_until(
        lambda: len(read_calls(directory / HISTORY)) >= CALLS_BEFORE,
        what="clients to ask and be told",
        deadline_seconds=START_SECONDS,
    )
    return plan


def _begin_files(cluster: Cluster, seed: int) -> file_clients.Plan:
    directory = cluster.supervisor.directory
    plan = file_clients.Plan(
        seed=seed,
        conf_dir=str(directory / "conf"),
        directory=str(directory / hosts.FILE_CLIENTS),
        outcome=str(directory / "files.json"),
    )
    process = cluster.run_on(hosts.FILE_CLIENTS, hosts.FILE_CLIENTS, file_clients.argv(plan))
    wait_until(
        lambda: file_clients.started(plan),
        what="clients to write and read files",
        deadline_seconds=START_SECONDS,
        abandon=process.ended_early,
    )
    return plan


def _end_files(cluster: Cluster, plan: file_clients.Plan) -> file_clients.Outcome:
    process = cluster.process(hosts.FILE_CLIENTS)
    process.send(signal.SIGTERM)
    if process.wait(FILES_SECONDS) != 0:
        raise LocalClusterError(f"Read all files again; {process.ended_early()}")
    return file_clients.outcome_of(plan)


def _verify(cluster: Cluster) -> str:
    command = cluster.system.verification()
    if command is None:
        return ""
    process = cluster.run_on(hosts.OPERATORS, "verify", command)
    return "" if process.wait(AUDIT_SECONDS) == 0 else process.ended_early() or "it failed"


def _layout(directory: Path) -> Layout:
    ports = JournalNodePorts(hosts.JOURNAL_PORT, hosts.JOURNAL_HTTP_PORT)
    return Layout(directory, hosts.CLIENT_PORT, dict.fromkeys(hosts.JOURNALNODES, ports), {})


def _logger(file: TextIO) -> Callable[[Mapping[str, object]], None]:
    began = time.monotonic()

    def log(event: Mapping[str, object]) -> None:
        at = time.monotonic()
        file.write(json.dumps({"at": round(at, 3), "since_start": round(at - began, 3), **event}))
        file.write("\n")
        file.flush()

    return log


def _told(done: list[Round], count: int) -> str:
    struck = sum(len(each.faults) for each in done)
    last = done[-1]
    kinds = " and ".join(
        f"{fault.kind} ({fault.seconds:g} s)" if fault.seconds else fault.kind
        for fault in last.faults
    )
    return f"{struck} of {count}: {kinds}; well again after {last.settle_seconds:.1f} s"
