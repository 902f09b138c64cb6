"""``nnha fsck``, and what ``nnha explain`` says of blocks: what the active NameNode knows."""

import json
import sys
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

import click
from rich.text import Text

from ha.cli.status.datanodes import no_list
from ha.cluster.daemon_queries import look_at
from ha.conf.own_user import own_user
from ha.conf.topology import HostPort, namenodes
from ha.console.cluster_options import ClusterCommand, about_a_cluster
from ha.console.exit_codes import DONE, UNHEALTHY
from ha.console.output import plain, show
from ha.console.result import API_VERSION, Code, CommandOutcome, Ended, Ending
from ha.daemon import event_loop
from ha.daemon.http.http_get import http_get
from ha.security.caller import Role

LOOK_SECONDS: Final = 2.0
CHECK_SECONDS: Final = 600.0
MOST_BYTES: Final = 64 * 1024 * 1024
MOST_CHARACTERS: Final = 400
_DENIED: Final = (CommandOutcome.UNAUTHORISED, Code.ACCESS_DENIED)
_ENDS: Final = {
    404: (CommandOutcome.REFUSED, Code.NO_SUCH_RECORD), 403: _DENIED, 401: _DENIED,
}  # fmt: skip
_WORDS: Final = ("missing", "corrupt", "under", "over", "misplaced", "not_listed")


@click.command()
@click.argument("path")
@click.option("--open", "with_open", is_flag=True, help="Files that are being written, too.")
@click.option("--snapshots", is_flag=True, help="What snapshots keep, too.")
@about_a_cluster("fsck", timeout_seconds=CHECK_SECONDS)
def fsck(*, place: ClusterCommand, path: str, with_open: bool, snapshots: bool) -> None:
    """List the files at PATH and below whose blocks are missing, corrupt, too few or misplaced.

    The active NameNode is asked. Exits 0 if all can be read, 8 if some cannot; 3 if there is no
    such path or no active, 7 if you may not read all of it, and 6 if it is not known.
    """
    flags = {"openforwrite": with_open, "includeSnapshots": snapshots}
    asked = {name: "1" for name, wanted in flags.items() if wanted}
    document = ask(place, "fsck", path=path, **asked)
    sums = document["totals"]
    found = [f"{sums[word]} {word.replace('_', ' ')}" for word in _WORDS if sums.get(word)]
    lines = [*lines_of(document), f"{sums.get('files', 0)} files, {sums.get('blocks', 0)} blocks: "]
    lines[-1] += ", ".join(found) or "all as they should be"
    if sums.get("striped_files"):
        lines.append(f"not judged, as they are erasure-coded: {sums['striped_files']} files")
    if not document["healthy"]:
        lines.append(f"! {sums['unreadable_files']} files cannot be read  → nnha datanodes")
    show_lines(place, document, lines)
    sys.exit(DONE if document["healthy"] else UNHEALTHY)


def ask(place: ClusterCommand, command: str, **asked: str) -> Mapping[str, Any]:
    """Return what the active NameNode says; raise Ended if it says nothing, or refuses."""
    conf, seconds = place.configuration, place.timeout_seconds
    look = look_at(conf, place.nameservice, deadline_seconds=min(seconds, LOOK_SECONDS))
    view = event_loop.run(look)
    active = view.active
    if active is None or active.of_hadoop:
        raise Ended(no_list(view, command))
    nodes = {one.namenode: one.http for one in namenodes(conf, place.nameservice)}
    target = "/fsck?" + urlencode({"form": "json", "ugi": own_user(), **asked})
    status, document = event_loop.run(answer_of(nodes[active.namenode], target, seconds))
    if status == HTTPStatus.OK and "blocks" in document:
        own = {"command": command, "nameservice": place.nameservice, "asked": active.namenode}
        return {"apiVersion": API_VERSION, **own, **document}
    outcome, code = _ENDS.get(status, (CommandOutcome.UNREACHABLE, Code.NO_ANSWER))
    found = f"{active.namenode}: {document.get('error', f'HTTP {status}')}"
    raise Ended(Ending(command, outcome, code, found, hint="nnha status"))


async def answer_of(
    address: HostPort, target: str, seconds: float
) -> tuple[int, Mapping[str, Any]]:
    """Return a status and an object; 0 where nothing came, or it has no such page."""
    said, status = "", 0
    try:
        answer = await http_get(
            address, target, most_bytes=MOST_BYTES, deadline_seconds=seconds, role=Role.NAMENODE
        )
        said, status = answer.body.decode("utf-8", "replace").strip(), answer.status
        document = json.loads(said)
    except (OSError, ValueError) as failure:  # a refusal may be plain text
        unknown = status == HTTPStatus.NOT_FOUND
        found = said[:MOST_CHARACTERS] or str(failure) or f"no answer in {seconds:g} s"
        return (0 if unknown else status), {"error": found}
    return status, document if isinstance(document, dict) else {}


def lines_of(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the blocks, each with what is done about it and its replicas."""
    for block in document["blocks"]:
        live = f"{block['live']} of {block['expected']} live"
        yield f"{block['path']} {block['block']}, {block['bytes']} bytes, {live}: {block['state']}"
        yield f"  {block['action']}"
        for one in block["replicas"]:
            where = f"{one['datanode']} ({one['address']}) {one['rack']} {one['type']}"
            yield f"  {where}: {one['why']}; {one['fate']}"


def show_lines(place: ClusterCommand, document: Mapping[str, Any], lines: list[str]) -> None:
    show(place.output, document, Text("\n".join(map(plain, lines))))
