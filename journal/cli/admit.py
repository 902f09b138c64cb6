"""``nnha journal admit --founding``: give the nodes of an imported journal their first votes."""

from collections.abc import Mapping

import click

from ha.console.exit_codes import FAILED, UNEXPECTED, UNREACHABLE
from ha.daemon import event_loop
from journal.cli import options
from journal.errors import JournalError
from journal.links.quorum_call import good
from journal.links.remote_node import RemoteNode
from journal.model import NodeName
from journal.proto import journal_pb2 as pb


@click.command("admit")
@click.option(
    "--founding", is_flag=True, help="Confirm that these are all nodes: nothing else is checked."
)
@options.about_a_journal
def admit_command(
    *,
    place: options.JournalTarget,
    output: str,
    founding: bool,
) -> None:
    """Give a vote to all nodes of a journal without voters, as after an import from Hadoop.

    A node whose folder was copied is a learner, because it may lack promises and edits of the
    original node.  Only you can know that these nodes are the whole journal, in its newest state.
    If any node has a vote, the command refuses: a writer then admits the others automatically.

    Exit status: 0 done; 3 refused, nothing was changed; 4 some were admitted and others not; 6 a
    node cannot be reached, nothing was changed.
    """

    async def ask(remote: RemoteNode) -> pb.JournalStatus:
        return await remote.status(place.timeout_seconds)

    statuses = event_loop.run(options.ask_each(place, ask))
    _ensure_founding(place, statuses, founding=founding)
    told = good(statuses)
    click.echo(
        "From now on each of these nodes votes with what it has. Edits that only their originals"
        " had are lost:",
        err=True,
    )
    for name, status in told.items():
        click.echo(
            f"  {name}  edits up to {status.last_written_txid}, promised"
            f" {status.last_promised_epoch}",
            err=True,
        )

    async def admit(remote: RemoteNode) -> None:
        await remote.admit_founding(told[remote.name].incarnation, place.timeout_seconds)

    done = event_loop.run(options.ask_each(place, admit))
    failures = options.bad(done)
    if output == "json":
        rows = [{"node": name, "admitted": name not in dict(failures)} for name in done]
        options.print_json(place, {"nodes": rows, "failures": dict(failures)})
    else:
        for name in good(done):
            click.echo(f"{name}  votes")
    if failures:
        for name, why in failures:
            click.echo(f"Error: {name}  {why}", err=True)
        click.echo("  next: nnha journal status; a writer admits the rest by itself", err=True)
        raise click.exceptions.Exit(FAILED if good(done) else UNEXPECTED)


def _ensure_founding(
    place: options.JournalTarget,
    statuses: Mapping[NodeName, pb.JournalStatus | JournalError],
    *,
    founding: bool,
) -> None:
    if silent := options.bad(statuses):
        raise options.refused(
            "all nodes must answer, so that no voter is overlooked",
            silent,
            "start these nodes, then run the same command",
            UNREACHABLE,
        )
    told = good(statuses)
    not_ready = [
        (name, f"stopped: {status.failed_because}" if status.failed_because else "not formatted")
        for name, status in told.items()
        if status.failed_because or not status.is_formatted
    ]
    if not_ready:
        raise options.refused("a node does not serve the journal", not_ready, "nnha journal status")
    voters = [(name, "votes already") for name, status in told.items() if not status.is_learner]
    if voters:
        raise options.refused(
            f"journal {place.uri.journal_id} has voters",
            voters,
            "make a NameNode active: its writer admits each learner that holds all the edits",
        )
    clusters = {(s.namespace_info.cluster_id, s.namespace_info.namespace_id) for s in told.values()}
    if len(clusters) > 1:
        mixed = [(name, f"cluster {s.namespace_info.cluster_id}") for name, s in told.items()]
        raise options.refused(
            "the nodes hold journals of different clusters", mixed, "import them again"
        )
    if not founding:
        held = [(name, f"edits up to {s.last_written_txid}") for name, s in told.items()]
        raise options.refused(
            "only you can know that these are the whole journal",
            held,
            "run the same command with --founding",
        )
