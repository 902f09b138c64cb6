"""``nnha datanodes``: the DataNodes as the active NameNode knows them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import wraps
from typing import Any, Final

import click
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from ha.cluster.daemon_queries import look_at
from ha.cluster.files_view import (
    DatanodeView,
    FilesView,
    lines_of_files,
    problems_of_files,
    size_text,
)
from ha.cluster.problems import problems_of_roles
from ha.cluster.view import ClusterView
from ha.console.cluster_options import ClusterCommand, about_a_cluster
from ha.console.grid import Column, Grid
from ha.console.output import plain, show
from ha.console.result import API_VERSION, Code, CommandOutcome, Ending
from ha.daemon import event_loop

DEADLINE_SECONDS = 1.5
_STYLES = {"stale": "yellow", "dead": "bold red"}


def _alone(listing: Callable[..., None]) -> Callable[..., None]:
    """Return a function that lists only where no subcommand was called, which has own options."""

    @wraps(listing)
    def run(**own: Any) -> None:  # noqa: ANN401 - of click's making
        if click.get_current_context().invoked_subcommand is None:
            listing(**own)

    return run


@click.group(invoke_without_command=True)
@_alone
@about_a_cluster("datanodes", timeout_seconds=DEADLINE_SECONDS)
def datanodes(*, place: ClusterCommand) -> None:
    """List the DataNodes, the worst first: state, last contact, blocks, volumes and their room.

    The active NameNode is asked. A DataNode is stale once it was silent for
    dfs.namenode.stale.datanode.interval, or its process has died; its replicas do not count then.
    Exits 0, even with dead ones; 3 if no NameNode is active, and 6 if the active is not known or
    does not say.
    """
    view = event_loop.run(
        look_at(place.configuration, place.nameservice, deadline_seconds=place.timeout_seconds)
    )
    active = view.active
    if active is None or active.files is None or active.of_hadoop:
        place.end(no_list(view))
    document = as_json(view.nameservice, active.namenode, active.files)
    show(place.output, document, Listing(active.files))


def as_json(nameservice: str, active: str, files: FilesView) -> Mapping[str, object]:
    """Return the DataNodes with fixed keys."""
    return {
        "apiVersion": API_VERSION,
        "command": "datanodes",
        "nameservice": nameservice,
        "asked": active,
        "not_listed": files.not_listed,
        "datanodes": [
            asdict(one) | {"volumes": [asdict(volume) for volume in one.volumes]}
            for one in files.datanodes
        ],
    }


def no_list(view: ClusterView, command: str = "datanodes") -> Ending:
    """Say why there is no list: no NameNode is active, or the active does not say."""
    active = view.active
    if active is None and not any(row.may_be_active for row in view.namenodes):
        found = "; ".join(problems_of_roles(view))
        return Ending(command, CommandOutcome.REFUSED, Code.NO_ACTIVE, found, hint="nnha explain")
    if active is not None and active.of_hadoop:
        found = f"{active.namenode} is {active.software}, which lists its DataNodes elsewhere"
        hint = "hdfs dfsadmin -report"
    else:
        why = "; ".join(problems_of_roles(view)) if active is None else active.note
        found = f"the DataNodes are not known: {why or 'the active does not report them'}"
        hint = "nnha status --timeout 10"
    return Ending(command, CommandOutcome.UNREACHABLE, Code.NO_ANSWER, found, hint=hint)


class Listing:
    """The DataNodes as a table, with the counts of all below."""

    def __init__(self, files: FilesView) -> None:
        self._files = files

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Implement rich's hook."""
        if self._files.datanodes:
            yield Grid(_COLUMNS, self._files.datanodes, wide=False).fitted(options.max_width)
        if more := self._files.not_listed:
            yield Text(f"and {more:,} more, none of them worse")
        yield from (Text(line) for line in lines_of_files(self._files))
        for problem in problems_of_files(self._files):
            yield Text(f"! {plain(problem)}", style="bold red")


def _state(row: DatanodeView) -> Text:
    if row.service != "in service":
        left = f", {row.blocks_left:,} blocks left" if row.blocks_left else ""
        return Text(plain(f"{row.state}, {row.service}{left}"), style="yellow")
    return Text(plain(row.state), style=_STYLES.get(row.state, "green"))


def _room(row: DatanodeView) -> str:
    return f"{size_text(row.used_bytes)} of {size_text(row.capacity_bytes)}"


def _remarks(row: DatanodeView) -> str:
    bad = [volume.uuid for volume in row.volumes if volume.failed]
    if not row.failed_volumes and not bad:
        return ""
    named = f": {plain(', '.join(bad))}" if bad else ""
    return f"{max(row.failed_volumes, len(bad))} failed{named}"


_COLUMNS: Final[Sequence[Column[DatanodeView]]] = (
    Column("DATANODE", lambda row: plain(row.host)),
    Column("ADDRESS", lambda row: plain(row.address), need=1),
    Column("RACK", lambda row: plain(row.rack or ""), need=5),
    Column("STATE", _state),
    Column("SEEN", lambda row: f"{row.last_contact_seconds:,.0f} s ago", right=True),
    Column("BLOCKS", lambda row: f"{row.blocks:,}", right=True, need=2),
    Column("VOLUMES", lambda row: str(len(row.volumes)), right=True, need=3),
    Column("USED", _room, right=True, need=4),
    Column("NOTE", _remarks),
)
