"""``nnha journal format``: make empty storage on all nodes, or on one that lost its own."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from ha.conf.keys.units import HostPort
from ha.console.exit_codes import FAILED, UNEXPECTED, UNREACHABLE
from ha.daemon import event_loop
from journal.cli import options
from journal.errors import JournalError
from journal.links.quorum_call import good
from journal.links.remote_node import RemoteNode
from journal.model import Epoch, NamespaceInfo, NodeName
from journal.proto import journal_pb2 as pb


@click.command("format")
@click.option("--node", metavar="HOST:PORT", help="Format only this node; it becomes a learner.")
@click.option(
    "--version-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The VERSION of a NameNode, for its namespace and cluster id; not needed with --node.",
)
@click.option("--force", is_flag=True, help="Delete the edits that are there.")
@options.about_a_journal
def format_command(
    *,
    place: options.JournalTarget,
    output: str,
    node: str | None,
    version_file: Path | None,
    force: bool,
) -> None:
    """Create empty storage for the journal on all nodes together, or on a single node.

    Nodes that are formatted together have a vote at once.  A node that is formatted alone is a
    learner: it copies the edits of the others, and gets a vote when the active NameNode's writer
    admits it.

    Exit status: 0 done; 3 refused, nothing was changed; 4 some nodes were formatted and others
    not; 6 a node that is needed cannot be reached, nothing was changed.
    """
    names = [NodeName(str(HostPort(host, port))) for host, port in place.nodes]
    if node is not None and node not in names:
        raise options.refused(
            f"{node} is no node of journal {place.uri.journal_id}",
            (),
            f"name one of {', '.join(names)}",
        )

    async def ask(remote: RemoteNode) -> pb.JournalStatus | None:
        return await _status(remote, place.timeout_seconds)

    statuses = event_loop.run(options.ask_each(place, ask))
    targets = names if node is None else [NodeName(node)]
    namespace = _namespace(place, statuses, targets, version_file)
    _ensure_reachable(statuses, targets)
    _ensure_ours(good(statuses), targets, namespace)
    _ensure_empty(good(statuses), targets, force=force)
    if node is not None:
        _ensure_learners_are_known(good(statuses), targets)
    done = event_loop.run(_format(place, targets, namespace, good(statuses), force=force))
    failures = options.bad(done)
    if output == "json":
        rows = [{"node": name, "formatted": name not in dict(failures)} for name in targets]
        options.print_json(place, {"nodes": rows, "failures": dict(failures)})
    else:
        for name in good(done):
            word = "formatted; a learner until it is admitted" if node else "formatted"
            click.echo(f"{name}  {word}")
    if failures:
        for name, why in failures:
            click.echo(f"Error: {name}  {why}", err=True)
        click.echo("  next: nnha journal status; then the same command with --force", err=True)
        raise click.exceptions.Exit(FAILED if good(done) else UNEXPECTED)


async def _status(remote: RemoteNode, timeout_seconds: float) -> pb.JournalStatus | None:
    """Return the journal's status on a node, or None where the node runs but lacks this journal."""
    if await remote.namespace(timeout_seconds) is None:
        return None
    return await remote.status(timeout_seconds)


Statuses = Mapping[NodeName, pb.JournalStatus | None]


def _ensure_reachable(
    statuses: Mapping[NodeName, pb.JournalStatus | JournalError | None],
    targets: Sequence[NodeName],
) -> None:
    silent = [(name, why) for name, why in options.bad(statuses) if name in targets]
    if silent:
        raise options.refused(
            "each node that is to be formatted must answer, so that none is left with old promises",
            silent,
            "start these nodes, then run the same command",
            UNREACHABLE,
        )


def _ensure_ours(statuses: Statuses, targets: Sequence[NodeName], namespace: NamespaceInfo) -> None:
    foreign = [
        (name, f"belongs to cluster {there.cluster_id}, namespace {there.namespace_id}")
        for name, status in statuses.items()
        if status is not None
        for there in (status.namespace_info,)
        if name in targets
        and (there.namespace_id, there.cluster_id) != (namespace.namespace_id, namespace.cluster_id)
    ]
    if foreign:
        raise options.refused(
            "another cluster's journal is never formatted, not even by force",
            foreign,
            "correct dfs.namenode.shared.edits.dir, or remove that node's folder by hand",
        )


def _ensure_empty(statuses: Statuses, targets: Sequence[NodeName], *, force: bool) -> None:
    held = [
        (
            name,
            f"holds edits up to {status.last_written_txid}, promised {status.last_promised_epoch}",
        )
        for name, status in statuses.items()
        if status is not None and name in targets
    ]
    if held and not force:
        raise options.refused(
            "these nodes have storage for the journal already",
            held,
            "nnha journal verify; only if these edits may be deleted, run the same command with "
            "--force",
        )
    for name, what in held:
        click.echo(f"{name}  {what}; this is deleted now", err=True)


def _ensure_learners_are_known(statuses: Statuses, targets: Sequence[NodeName]) -> None:
    """Refuse to format while a node runs a version without learners (it names no incarnation).

    Such a node would let the new one vote at once, without the promises that it has lost.
    """
    others = {n: s for n, s in statuses.items() if s is not None and n not in targets}
    unnamed = [
        (name, "names no incarnation") for name, status in others.items() if not status.incarnation
    ]
    if unnamed:
        raise options.refused(
            "these nodes run a version that does not tell learners from voters",
            unnamed,
            "bring all JournalNodes to this version first",
        )


def _namespace(
    place: options.JournalTarget,
    statuses: Mapping[NodeName, pb.JournalStatus | JournalError | None],
    targets: Sequence[NodeName],
    version_file: Path | None,
) -> NamespaceInfo:
    """Return the namespace of ``version_file`` or, without one, of the nodes that keep theirs."""
    if version_file is not None:
        return _read_version(version_file)
    keeping = {
        name: status
        for name, status in good(statuses).items()
        if status is not None and name not in targets
    }
    found = {
        NamespaceInfo(
            info.layout_version, info.namespace_id, info.cluster_id, info.ctime, info.block_pool_id
        )
        for info in (status.namespace_info for status in keeping.values())
    }
    if len(found) == 1 and len(keeping) >= place.needed - 1:
        return found.pop()
    if len(targets) > 1 or not found:
        raise options.refused(
            "it is not known for which file system the journal is",
            (),
            "nnha namenode -initializeSharedEdits on the NameNode, or give --version-file"
            " NAMEDIR/current/VERSION",
        )
    raise options.refused(
        f"the other nodes do not agree on the file system, or fewer than {place.needed - 1} answer",
        options.bad(statuses),
        "nnha journal status",
    )


def _read_version(path: Path) -> NamespaceInfo:
    lines = [line.partition("=") for line in path.read_text(errors="replace").splitlines()]
    told = {key.strip(): value.strip() for key, sign, value in lines if sign}
    try:
        return NamespaceInfo(
            int(told["layoutVersion"]),
            int(told["namespaceID"]),
            told["clusterID"],
            int(told["cTime"]),
            told.get("blockpoolID", ""),
        )
    except KeyError as lacking:
        why = f"it lacks {lacking.args[0]}"
    except ValueError as problem:
        why = str(problem)
    raise options.NotDone(f"{path} is no VERSION file of a NameNode: {why}", UNEXPECTED)


async def _format(
    place: options.JournalTarget,
    targets: Sequence[NodeName],
    namespace: NamespaceInfo,
    statuses: Statuses,
    *,
    force: bool,
) -> dict[NodeName, JournalError | None]:
    founding = len(targets) == len(place.nodes)

    async def one(remote: RemoteNode) -> None:
        status = statuses[remote.name]
        await remote.format(
            namespace,
            force=force,
            founding=founding,
            seen_promised=None if status is None else Epoch(status.last_promised_epoch),
            seen_namespace_id=None if status is None else status.namespace_info.namespace_id,
            timeout_seconds=place.timeout_seconds * 2,
        )

    return await options.ask_each(place, one, targets)
