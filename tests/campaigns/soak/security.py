"""``./run soak security``: what an administrator does to a running cluster, as the document says.

A client writes all the while, and a failover is asked for in each step.  ``authority``: another
authority signs, in three steps.  ``migration``: from a cluster that believes everybody to a strict
one, daemon by daemon.  No call may fail, nothing that was acknowledged may be missing, no daemon
may restart that was not asked to, and no role change but those asked for.
"""

import json
import re
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click

from deploy.local.cluster.certificates import authority_folder, identities, tls_folder
from deploy.local.cluster.cluster import Cluster, zkfc_of
from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.layout import JOURNALNODES, NAMENODES
from deploy.local.cluster.places import fresh_directory
from deploy.local.cluster.processes import http_get, wait_until
from deploy.local.cluster.signals import orderly_end
from deploy.local.cluster.site import write_conf_dir
from deploy.local.demo.screen import Screen
from deploy.local.demo.stage import Stage, staged
from deploy.local.workload.trial import hand_over, kill_active, settle, the_active
from ha.conf.keys.security import SECURITY_MODE, TLS_CHECK_INTERVAL, TLS_DIR, Mode
from ha.console.exit_codes import DONE, REFUSED
from ha.security.certificate_files import CA, CERT, KEY, new_folder, replace
from ha.security.own_tls import act_as
from ha.security.tls_files import TlsFiles

COMMAND_SECONDS: Final = 120.0
SEEN_SECONDS: Final = 60.0
WARM_UP_WRITES: Final = 100
CHECK: Final = {TLS_CHECK_INTERVAL.name: "500ms"}
ADMIN: Final = "admin"
_COUNTER: Final = re.compile(
    r"^nnha_auth_unauthenticated_total\{[^}]*\} ([0-9.e+]+)$", re.MULTILINE
)


class NotAsPromised(Exception):
    """The cluster did what the document says that it does not."""


def ensure(holds: bool, what: str) -> None:
    """Raise ``NotAsPromised`` unless that holds."""
    if not holds:
        raise NotAsPromised(what)


@dataclass
class Play:
    """A cluster under load, and the role changes that were asked of it."""

    stage: Stage
    asked: int = 0
    seconds: list[float] = field(default_factory=list)

    @property
    def cluster(self) -> Cluster:
        return self.stage.cluster

    def begin(self) -> None:
        self.stage.workload.start()
        self.stage.workload.wait_for_acknowledged(WARM_UP_WRITES, deadline_seconds=SEEN_SECONDS)

    def fail_over(self, *, kill: bool = False) -> None:
        if kill:
            done = kill_active(self.cluster, self.stage.workload)
            self.cluster.start(done.old)
        else:
            done = hand_over(self.cluster, self.stage.workload, self._ask)
        settle(self.cluster, done.old)
        self.asked += 1
        self.seconds.append(done.client_longest_call_seconds)

    def _ask(self, old: str, new: str) -> None:
        # A process of its own: here it would change under which certificate we call.
        self.nnha("haadmin", "--conf-dir", str(self.cluster.conf_dir), "-failover", old, new)

    def call_anew(self) -> None:
        """Have this process take its certificate from the files again; a command would."""
        act_as(TlsFiles(tls_folder(self.cluster.layout, ADMIN), SEEN_SECONDS), Mode.STRICT)

    def nnha(self, *words: str, code: int = DONE) -> str:
        """Return what a command prints; it must end with that code."""
        command = [sys.executable, "-m", "ha.cli.main", *words]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
        )
        said = done.stdout + done.stderr
        ensure(done.returncode == code, f"nnha {' '.join(words)}: {done.returncode}, {said}")
        return said

    def end(self, epoch: int) -> dict[str, Any]:
        """Stop the client, and hold all against the answers that it got."""
        self.stage.workload.stop()
        _, now = the_active(self.cluster)
        verdict = self.stage.verdict()
        errors = [f"{one.kind} {one.path}: {one.error}" for one in self.stage.workload.errors()]
        return {
            "acknowledged": verdict.acknowledged,
            "missing": len(verdict.missing),
            "duplicated": len(verdict.duplicated),
            "client_errors": len(errors),
            "errors": errors[:10],
            "role_changes_asked": self.asked,
            "role_changes": now - epoch,
            "longest_call_seconds": round(max(self.seconds, default=0.0), 3),
            "well": verdict.clean and not errors and now - epoch == self.asked,
        }


# -- another authority -------------------------------------------------------------------------


def change_authority(stage: Stage) -> dict[str, Any]:
    """Change it in three steps, a failover in each; return what was found."""
    play = Play(stage)
    play.begin()
    _, epoch = the_active(play.cluster)
    layout, authority = play.cluster.layout, authority_folder(play.cluster.layout)
    before = _pids(play.cluster)
    conf = ("--conf-dir", str(play.cluster.conf_dir))
    folders = [tls_folder(layout, part) for part, _, _ in identities(layout)]
    old = {name: (folders[0] / name).read_bytes() for name in (CERT, KEY)}

    def step(number: int, *more: str, code: int = DONE) -> str:
        words = ("--dir", str(authority), "--ca", "--step", str(number), *conf)
        return play.nnha("security", "rotate", *words, *more, code=code)

    def copy() -> None:
        for folder in folders:
            replace(folder, {CA: (authority / CA).read_bytes()})
        play.call_anew()

    def accepted(number: int) -> None:
        wait_until(
            lambda: _accepts(partial(step, number)),
            what=f"every daemon to be ready for step {number}",
            deadline_seconds=SEEN_SECONDS,
        )

    step(1)
    ensure("does not trust" in step(2, code=REFUSED), "nobody has the new authority yet")
    copy()
    play.fail_over()
    accepted(2)
    ensure("still signed by" in step(3, code=REFUSED), "nobody has a new certificate yet")
    for folder in folders:
        play.nnha("security", "rotate", "--dir", str(authority), "--out", str(folder))
    play.call_anew()
    play.fail_over()
    accepted(3)
    copy()
    _until_all_have(play, 1)
    play.fail_over()
    ensure(_pids(play.cluster) == before, "a daemon has restarted")
    stale = new_stale(layout.directory / "stale", old, authority)
    for name in (*JOURNALNODES, *NAMENODES):
        ensure(_is_refused(play.cluster, name, stale), f"{name} took a certificate of before")
    return play.end(epoch)


def new_stale(folder: Path, old: dict[str, bytes], authority: Path) -> Path:
    """Write a certificate of before, whose owner knows the authority of now."""
    new_folder(folder, {**old, CA: (authority / CA).read_bytes()})
    return folder


def _is_refused(cluster: Cluster, name: str, stale: Path) -> bool:
    context = ssl.create_default_context(cafile=stale / CA)
    context.load_cert_chain(stale / CERT, stale / KEY)
    at = urlsplit(cluster.layout.url(name))
    try:
        with (
            socket.create_connection((at.hostname or "", at.port or 0), SEEN_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=at.hostname) as secured,
        ):
            secured.sendall(b"GET /livez HTTP/1.0\r\n\r\n")
            return not secured.recv(1)
    except ssl.SSLError as refusal:
        return "UNKNOWN_CA" in str(refusal)


def _accepts(step: Callable[[], str]) -> bool:
    try:
        step()
    except NotAsPromised:
        return False
    return True


def _until_all_have(play: Play, authorities: int) -> None:
    """Wait until every daemon that can be asked trusts this number of authorities."""

    def all_have() -> bool:
        said = play.nnha("security", "show", "--conf-dir", str(play.cluster.conf_dir), "-o", "json")
        return all(len(one.get("trusts", ())) == authorities for one in json.loads(said))

    wait_until(
        all_have, what=f"all to trust {authorities} authorities", deadline_seconds=SEEN_SECONDS
    )


def _pids(cluster: Cluster) -> dict[str, int]:
    return {name: cluster.process(name).pid for name in cluster.parts}


# -- from an insecure cluster to a strict one --------------------------------------------------


def migrate(stage: Stage) -> dict[str, Any]:
    """Issue all certificates, then restart all daemons in turn; then be strict."""
    play = Play(stage)
    play.begin()
    _, epoch = the_active(play.cluster)
    _make_certificates(play)
    _configure(play.cluster, Mode.PERMISSIVE)
    for number, name in enumerate(_in_turn(play)):
        _restart(play, name)
        if number == len(JOURNALNODES) + 1:
            # One NameNode and one ZKFC have certificates, and the others have none.
            play.fail_over()
            ensure(_let_in(play.cluster) > 0, "nobody without a proof was counted")
            play.fail_over()
    play.fail_over(kill=True)
    _configure(play.cluster, Mode.STRICT)
    play.call_anew()
    for name in _in_turn(play):
        _restart(play, name)
    play.fail_over()
    bare = play.nnha(
        "haadmin", "--conf-dir", str(play.cluster.conf_dir), "-D", f"{TLS_DIR.name}=",
        "-getServiceState", NAMENODES[0], code=255,
    )  # fmt: skip
    ensure("it needs a certificate (nnha.security.tls.dir)" in bare, bare)
    modes = play.nnha("security", "show", "--conf-dir", str(play.cluster.conf_dir), "-o", "json")
    ensure({one.get("mode") for one in json.loads(modes)} == {"strict"}, modes)
    return play.end(epoch)


def _in_turn(play: Play) -> Iterator[str]:
    """Yield JournalNodes, then each standby NameNode with its ZKFC; a hand-over in between."""
    yield from JOURNALNODES
    for number in range(len(NAMENODES)):
        if number:
            play.fail_over()
        active, _ = the_active(play.cluster)
        (standby,) = (name for name in NAMENODES if name != active)
        yield standby
        yield zkfc_of(standby)


def _restart(play: Play, name: str) -> None:
    cluster = play.cluster
    play.stage.screen.say(f"restart {name}")
    cluster.supervisor.stop_together((name,))
    cluster.start(name)
    for namenode in NAMENODES:
        if name in (namenode, zkfc_of(namenode)):
            settle(cluster, namenode)
    _wait_for_journal(cluster)


def _wait_for_journal(cluster: Cluster) -> None:
    """Wait until each JournalNode takes part again."""

    def whole() -> bool:
        active = cluster.active_namenodes()
        url = f"{cluster.layout.url(active[0])}/status" if active else ""
        got = http_get(url, deadline_seconds=5) if url else None
        nodes = json.loads(got[1]).get("journal") if got and got[0] == 200 else None
        return isinstance(nodes, list) and bool(nodes) and all(one["in_sync"] for one in nodes)

    wait_until(whole, what="every JournalNode to be in sync", deadline_seconds=SEEN_SECONDS)


def _make_certificates(play: Play) -> None:
    layout = play.cluster.layout
    authority = str(authority_folder(layout))
    play.nnha("security", "init", "--dir", authority, "--cluster-id", "local")
    hosts = ("--host", "localhost", "--host", "127.0.0.1")
    for part, role, name in identities(layout):
        out = str(tls_folder(layout, part))
        play.nnha("security", "issue", role, name, *hosts, "--dir", authority, "--out", out)


def _configure(cluster: Cluster, mode: Mode) -> None:
    """Write what daemons find that start from now on."""
    tls = {TLS_DIR.name: str(tls_folder(cluster.layout, "")), SECURITY_MODE.name: mode.value}
    write_conf_dir(cluster.layout, {**CHECK, **tls})


def _let_in(cluster: Cluster) -> float:
    """Count the calls of unproven callers that daemons have let in.

    Of gRPC's: other calls on one machine are proven by the kernel, with and without certificates.
    """
    found = 0.0
    for name in JOURNALNODES:
        got = http_get(f"{cluster.layout.url(name)}/metrics", deadline_seconds=5)
        text = got[1].decode() if got is not None else ""
        found += sum(float(one[1]) for one in _COUNTER.finditer(text))
    return found


# -- the command -------------------------------------------------------------------------------

PLAYS: Final = {"authority": change_authority, "migration": migrate}
INSECURE: Final = {SECURITY_MODE.name: Mode.INSECURE.value}


def played(name: str, directory: Path, screen: Screen) -> dict[str, Any]:
    """Play on a cluster of its own.  Raise NotAsPromised, LocalClusterError."""
    secure = name == "authority"
    keys = CHECK if secure else {**CHECK, **INSECURE}
    began = time.monotonic()
    with staged(directory, screen, keys, secure=secure) as stage:
        facts = PLAYS[name](stage)
    return {"play": name, **facts, "seconds": round(time.monotonic() - began, 1)}


@click.command()
@click.option("--only", type=click.Choice(tuple(PLAYS)), default=None)
@click.option("--rounds", default=1, show_default=True, type=click.IntRange(min=1))
@click.option("--json", "as_object", is_flag=True, help="One JSON object as stdout's last line.")
@click.option("--directory", type=click.Path(path_type=Path, file_okay=False))
def main(*, only: str | None, rounds: int, as_object: bool, directory: Path | None) -> None:
    """Change the authority, and make a cluster strict, under load; exit code 0 if all was well."""
    screen = Screen.on_stderr_if(as_object)
    base = directory or fresh_directory("soak-security")
    told: list[dict[str, Any]] = []
    try:
        with orderly_end():
            for number in range(rounds):
                for name in [only] if only else PLAYS:
                    told.append(played(name, base / f"{name}{number}", screen))
                    screen.say(json.dumps(told[-1]))
    except (LocalClusterError, NotAsPromised) as error:
        raise click.ClickException(str(error)) from error
    well = all(one["well"] for one in told)
    if as_object:
        click.echo(json.dumps({"well": well, "plays": told}))
    raise SystemExit(0 if well else 1)
