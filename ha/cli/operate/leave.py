"""``nnha datanodes decommission``, ``maintenance``, ``recommission``: DataNodes leave and return.

The hosts file is edited, each NameNode is asked to read it, and the active says how far it is.
"""

import os
import time
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any, Final, NoReturn

import click
from google.protobuf.empty_pb2 import Empty

from ha.cli.operate.notice_options import Duration
from ha.cli.operate.plan.hosts_file import json_with, text_with
from ha.cluster.daemon_queries import look_at
from ha.cluster.files_view import DatanodeView
from ha.conf.keys import hosts as keys
from ha.conf.topology import HostPort, is_local, namenodes
from ha.console.cluster_options import ClusterCommand, about_a_cluster
from ha.console.result import Code, CommandOutcome, Ended, Ending
from ha.daemon import event_loop
from ha.record import dataclass
from ha.rpc.client import call_once
from ha.rpc.errors import RemoteFault, RpcError
from ha.rpc.java_names import CLIENT_PROTOCOL

LOOK_SECONDS: Final = 2.0
REFRESH_SECONDS: Final = 30.0
POLL_SECONDS: Final = 1.0
_JSON_STATES: Final = {
    "decommission": "DECOMMISSIONED", "maintenance": "IN_MAINTENANCE", "recommission": "NORMAL",
}  # fmt: skip
_BEGUN: Final = {
    "decommission": ("decommissioning", "decommissioned"),
    "maintenance": ("entering maintenance", "in maintenance"),
    "recommission": ("in service",),
}
"""By command, what the DataNode is then; the last is what is waited for."""


def _about_one(command: str, function: Callable[..., None]) -> Callable[..., None]:
    """Give a command HOST, --shared and --wait, and the options of a command about a cluster."""

    @wraps(function)
    def run(*, place: ClusterCommand, host: str, shared: bool, wait: bool, **more: Any) -> None:  # noqa: ANN401 - its own options
        function(_Change(place, command, host, shared, wait), **more)

    asking = about_a_cluster(command, timeout_seconds=LOOK_SECONDS)(run)
    wait = click.option("--wait", is_flag=True, help="Until it is done; after Ctrl-C it goes on.")
    shared = click.option("--shared", is_flag=True, help="All NameNodes read this very file.")
    return click.argument("host")(shared(wait(asking)))


@click.command()
@partial(_about_one, "decommission")
def decommission(change: "_Change") -> None:
    """Have all blocks of a DataNode (HOST or HOST:PORT) copied elsewhere, so that it may go.

    Writes HOST into the hosts file, and has each NameNode read it. Exits 0 once that has begun,
    with --wait once the DataNode is decommissioned; 3 if nothing was changed, 4 if not all is done.
    """
    change.run()


@click.command()
@click.option("--for", "seconds", type=Duration(), help="It serves again by itself after this.")
@partial(_about_one, "maintenance")
def maintenance(change: "_Change", *, seconds: float | None) -> None:
    """Let a DataNode (HOST or HOST:PORT) be switched off for a while; few blocks are copied.

    Needs the hosts file in JSON (CombinedHostFileManager). Exits as decommission does.
    """
    change.run(None if seconds is None else int((time.time() + seconds) * 1000))


@click.command()
@partial(_about_one, "recommission")
def recommission(change: "_Change") -> None:
    """Have a DataNode (HOST or HOST:PORT) serve again. Exits as decommission does."""
    change.run()


@dataclass(frozen=True, slots=True)
class _Change:
    """One DataNode is to leave or to return."""

    place: ClusterCommand
    command: str
    host: str
    shared: bool
    wait: bool

    def run(self, until_ms: int | None = None) -> None:
        if self._state()[0] is None:
            found = "the active NameNode is not known, or does not say which DataNodes there are"
            self._end(CommandOutcome.UNREACHABLE, Code.NO_ANSWER, found, "nnha status")
        file, after = self._edit_hosts(until_ms)
        asked = namenodes(self.place.configuration, self.place.nameservice)
        if after != (file.read_text() if file.exists() else ""):
            hosts = list(dict.fromkeys(one.rpc.host for one in asked))
            if not self.shared and not all(map(is_local, hosts)):
                self._end(
                    CommandOutcome.REFUSED, Code.NOT_SEEN_BY_ALL,
                    f"each NameNode reads {file} on its own host ({', '.join(hosts)}), and "
                    f"{self.host} is not asked for there yet, as far as this host's file shows",
                    f"edit it on each ({self._in_words()}), and run this again; or use --shared, "
                    "if all read this very file",
                )  # fmt: skip
            try:
                replace(file, after)
            except OSError as failure:
                found = f"{file} cannot be written: {failure}. Nothing was changed"
                hint = "run this as root, or as the owner of the file and its folder"
                self._end(CommandOutcome.REFUSED, Code.BAD_CONFIGURATION, found, hint)
        answers = [(one, event_loop.run(_refresh(one.rpc))) for one in asked]
        refused = [f"{one.namenode}: {why}" for one, why in answers if why]
        done, said = _BEGUN[self.command], ""
        while (state := self._state())[0] != done[-1] and self.wait and state[0] in (*done, None):
            if said != (said := f"{self.host} is {state[0] or 'not known: no active'}{state[1]}"):
                click.echo(said, err=True)
            time.sleep(POLL_SECONDS)
        if state[0] not in done or refused:
            why = "; ".join(refused) or f"{self.host} is {state[0] or 'not known'} on the active"
            self._end(
                CommandOutcome.FAILED, Code.NOT_SEEN_BY_ALL,
                f"{file} is as it should be here, and not all follow it: {why}",
                f"compare {file} on all NameNodes, then: hdfs dfsadmin -refreshNodes",
            )  # fmt: skip
        hint = "" if state[0] == done[-1] else "nnha datanodes"
        self._end(CommandOutcome.DONE, Code.DONE, f"{self.host} is {state[0]}", hint)

    def _end(self, outcome: CommandOutcome, code: Code, found: str, hint: str) -> NoReturn:
        raise Ended(Ending(self.command, outcome, code, found, hint=hint, target=self.host))

    def _in_words(self) -> str:
        if self.place.configuration.get(keys.PROVIDER) == keys.JSON_HOSTS:
            return f"adminState {_JSON_STATES[self.command]} for {self.host}"
        return f"{'no' if self.command == 'recommission' else 'a'} line {self.host}"

    def _edit_hosts(self, until_ms: int | None) -> tuple[Path, str]:
        """Return the hosts file, and what is to be in it."""
        conf = self.place.configuration
        combined = conf.get(keys.PROVIDER) == keys.JSON_HOSTS
        key = keys.INCLUDE if combined else keys.EXCLUDE
        file = Path(conf.get(key))
        if not conf.get(key) or (self.command == "maintenance" and not combined):
            why = "needs the hosts file in JSON" if conf.get(key) else "needs a hosts file"
            self._end(
                CommandOutcome.REFUSED, Code.BAD_CONFIGURATION,
                f"{self.command} {why}, and {keys.PROVIDER.name} is {conf.get(keys.PROVIDER)}, "
                f"{key.name} {conf.get(key) or 'not set'}",
                "set them on all NameNodes, and restart these one by one",
            )  # fmt: skip
        try:
            after = file.read_text() if file.exists() else ""
            if combined:
                after = json_with(after, self.host, _JSON_STATES[self.command], until_ms)
            else:
                after = text_with(after, self.host, excluded=self.command == "decommission")
        except (OSError, ValueError) as bad:
            found = f"{file} cannot be edited: {bad}"
            self._end(CommandOutcome.REFUSED, Code.BAD_CONFIGURATION, found, "correct it by hand")
        return file, after

    def _state(self) -> tuple[str | None, str]:
        """Return the DataNode's state as the active has it, None if none says, and what is left."""
        place = self.place
        view = event_loop.run(
            look_at(place.configuration, place.nameservice, deadline_seconds=place.timeout_seconds)
        )
        files = None if view.active is None else view.active.files
        if files is None:
            return None, ""
        row = next((one for one in files.datanodes if self.host.lower() in _names(one)), None)
        if row is None:
            found = f"the active knows no DataNode {self.host}"
            self._end(CommandOutcome.REFUSED, Code.NO_SUCH_NODE, found, "nnha datanodes")
        left = "" if row.blocks_left is None else f", {row.blocks_left:,} blocks left"
        return row.service, left


def _names(one: DatanodeView) -> set[str]:
    ip, _, port = one.address.rpartition(":")
    return {name + end for name in (one.host.lower(), ip) for end in ("", f":{port}")}


async def _refresh(address: HostPort) -> str:
    """Have a NameNode read the file; return why it refuses to.

    One that does not answer reads it at its start, or when it becomes active.
    """
    try:
        await call_once(
            address, CLIENT_PROTOCOL, "refreshNodes", Empty(), Empty,
            deadline_seconds=REFRESH_SECONDS,
        )  # fmt: skip
    except RpcError as silence:
        click.echo(f"not asked, it will read the file by itself: {silence}", err=True)
    except RemoteFault as refusal:
        return str(refusal)
    return ""


def replace(file: Path, text: str) -> None:
    """Put a file in the place of another at once: a NameNode may read it now, as its own user.

    Owner and mode stay, and a link to it. Raises OSError, and the old file is there then.
    """
    file = file.resolve()
    new = file.with_name(f".{file.name}.new")
    try:
        with new.open("w") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        before = file.stat() if file.exists() else None
        if before is not None and (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
            os.chown(new, before.st_uid, before.st_gid)
        new.chmod(0o644 if before is None else before.st_mode & 0o777)
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)
