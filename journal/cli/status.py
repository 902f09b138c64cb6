"""``nnha journal status`` and ``segments``: how each node fares, and who holds what."""

from collections.abc import Sequence

import click
from rich.table import Column, Table

from ha.console.exit_codes import UNHEALTHY, UNREACHABLE
from ha.console.output import console
from ha.daemon import event_loop
from journal.cli import options
from journal.cli.inventory import Row, judge, rows
from journal.cli.learners import Learner, ask_learners, learner_lines, learner_rows
from journal.cli.strangers import Answers, lacks_founders, own, strangers, voters
from journal.errors import JournalError, NotFormatted, Rejected
from journal.links.quorum_call import good
from journal.links.remote_node import RemoteNode
from journal.messages import segment_of
from journal.model import NodeName, Segment, TxId
from journal.proto import journal_pb2 as pb

FOUNDING = (
    "if these nodes hold what Hadoop's did, stop every NameNode; then `nnha journal admit "
    "--founding` gives them their first votes"
)


@click.command("status")
@options.about_a_journal
def status_command(*, place: options.JournalTarget, output: str) -> None:
    """Ask each node what it has promised and holds.

    Exit status: 0 a majority answers and serves; 6 it does not.
    """

    async def ask(remote: RemoteNode) -> pb.JournalStatus:
        return await remote.status(place.timeout_seconds)

    answers = event_loop.run(options.ask_each(place, ask))
    if output == "json":
        options.print_json(place, {"nodes": [_status_json(node, answers) for node in answers]})
    else:
        _show_status(place, answers)
    if len(voters(own(answers))) < place.needed:
        raise click.exceptions.Exit(UNREACHABLE)


@click.command("segments")
@options.about_a_journal
def segments_command(*, place: options.JournalTarget, output: str) -> None:
    """Show which node holds which segment, and mark what differs.

    A learner's copies are shown, and not counted.
    Exit status: 0 all is well; 6 no majority of the nodes can be reached; 8 lists differ.
    """
    listed, learners, failures = event_loop.run(ask_lists_and_learners(place))
    counted, silent = _rows_of(listed), len(failures) + len(learners)
    findings = judge(counted, silent=silent, answering=len(listed)) if listed else ()
    copies = {node: (learner.status, learner.segments) for node, learner in learners.items()}
    held = _rows_of({**listed, **copies})
    voters = [segment for _, segments in listed.values() for segment in segments]
    if output == "json":
        body = {
            "nodes": sorted({*dict(failures), *listed, *learners}),
            "unreachable": dict(failures),
            "learners": learner_rows(learners, voters),
            "segments": [_row_json(row) for row in held],
            "findings": [
                {"kind": f.kind, "first_txid": f.first, "nodes": f.nodes, "message": f.message}
                for f in findings
            ],
        }
        options.print_json(place, body)
    else:
        _show_segments(place, held, sorted({*dict(failures), *listed, *learners}))
        out = console()
        options.tell(out, [*failures, *learner_lines(learners, voters)])
        for finding in findings:
            out.print(f"[bold red]{finding.kind}[/]: {finding.message}", soft_wrap=True)
    if len(listed) < place.needed:
        raise click.exceptions.Exit(UNREACHABLE)
    if findings:
        raise click.exceptions.Exit(UNHEALTHY)


Lists = dict[NodeName, tuple[pb.JournalStatus, tuple[Segment, ...]]]


async def ask_lists(place: options.JournalTarget) -> tuple[Lists, list[tuple[NodeName, str]]]:
    """Return the status and the segments of each node, and why the other nodes gave none."""

    async def ask(remote: RemoteNode) -> tuple[pb.JournalStatus, tuple[Segment, ...]]:
        status = await remote.status(place.timeout_seconds)
        if status.HasField("failed_because"):
            raise NotFormatted(f"stopped: {status.failed_because}")
        manifest = await remote.manifest(
            TxId(0), in_progress=True, timeout_seconds=place.timeout_seconds
        )
        held = tuple(segment_of(message) for message in manifest.segments)
        return status, tuple(segment for segment in held if segment.last >= segment.first)

    answers = await options.ask_each(place, ask)
    return good(answers), options.bad(answers)


async def ask_lists_and_learners(
    place: options.JournalTarget,
) -> tuple[Lists, dict[NodeName, Learner], list[tuple[NodeName, str]]]:
    """Return what ``ask_lists`` does and, as the middle item, the learners and what they hold.

    Strangers are among those that gave nothing.
    """
    listed, failures = await ask_lists(place)
    firsts = {segment.first for _, segments in listed.values() for segment in segments}
    learners = await ask_learners(place, [node for node, _ in failures], firsts)
    statuses = {node: status for node, (status, _) in listed.items()}
    others = strangers({**statuses, **{node: one.status for node, one in learners.items()}})
    silent = [(node, why) for node, why in failures if node not in learners]
    return (
        {node: told for node, told in listed.items() if node not in others},
        {node: told for node, told in learners.items() if node not in others},
        [*silent, *others.items()],
    )


def _rows_of(lists: Lists) -> tuple[Row, ...]:
    return rows(
        {node: segments for node, (_, segments) in lists.items()},
        {node: damaged_in(status) for node, (status, _) in lists.items()},
    )


def damaged_in(status: pb.JournalStatus) -> tuple[TxId, ...]:
    """Return the first txids of the segments that a node reports as damaged."""
    return tuple(TxId(first) for first in status.damaged_segments)


def state_of(node: NodeName, answers: Answers) -> str:
    """Return a node's state in a few words: the worst one that applies."""
    answer = answers[node]
    if isinstance(answer, JournalError):
        return _absence(answer)
    if answer.HasField("failed_because"):
        return "stopped"
    if not answer.is_formatted:
        return "not formatted"
    if node in strangers(answers):
        return "stranger"
    if answer.is_learner:
        return "learner"
    if answer.damaged_segments:
        return "damaged"
    others = good(own(answers)).values()
    newest = max((a.last_writer_epoch, a.open_segment_first_txid) for a in others)
    ours = (answer.last_writer_epoch, answer.open_segment_first_txid)
    if (newest[1] and ours != newest) or behind(answer, answers):
        return "out of sync"
    return "in sync"


def _absence(error: JournalError) -> str:
    """Return why a node gave no status.

    A closed port means that no process runs there; no answer at all says nothing about the node.
    """
    if isinstance(error, NotFormatted):
        return "not formatted"
    if isinstance(error, Rejected):
        return "refuses"
    return "down" if "refused" in str(error).lower() else "no answer"


def behind(answer: pb.JournalStatus, answers: Answers) -> int:
    """Return how many of the edits that are known to be committed the node lacks."""
    committed = max((a.committed_txid for a in good(own(answers)).values()), default=0)
    return max(0, committed - answer.last_written_txid)


def _show_status(place: options.JournalTarget, answers: Answers) -> None:
    table = Table(
        Column("node", overflow="fold"),
        Column("state", overflow="fold"),
        *(
            Column(name, justify="right", overflow="fold")
            for name in ("promised", "writer", "last txid", "committed", "behind", "open")
        ),
        Column("via", overflow="fold"),
        Column("free", justify="right", overflow="fold"),
        title=f"journal {place.uri.journal_id}",
        title_justify="left",
        # Without lines it fits a terminal of 80 columns, headings and all.
        box=None,
        pad_edge=False,
        collapse_padding=True,
    )
    for node, answer in answers.items():
        state = state_of(node, answers)
        if isinstance(answer, JournalError):
            table.add_row(node, state, *["?"] * 8)
            continue
        table.add_row(
            node,
            state,
            f"{answer.last_promised_epoch:,}",
            f"{answer.last_writer_epoch:,}",
            _number(answer, "last_written_txid"),
            _number(answer, "committed_txid"),
            "-" if state == "stranger" else f"{behind(answer, answers):,}",
            _number(answer, "open_segment_first_txid"),
            _via(answer) or "-",
            _free(answer),
        )
    out = console()
    out.print(table)
    options.tell(out, [(node, why) for node in answers for why in _remarks(node, answers)])
    voting = len(voters(own(answers)))
    spare = voting - place.needed
    word = "could lose no more node" if spare == 0 else f"could lose {spare} more"
    if lagging := [node for node in answers if state_of(node, answers) == "out of sync"]:
        # A node that votes and lacks edits saves no write of the segment that is open now.
        at_once = max(0, spare - len(lagging))
        word = (
            f"could lose {at_once} more at once, and {spare} when {' and '.join(lagging)} "
            f"{'is' if len(lagging) == 1 else 'are'} in sync again. A Java NameNode's writer takes "
            "a node back with its next segment: hdfs dfsadmin -rollEdits"
        )
    out.print(
        f"{voting} of {len(answers)} nodes serve and vote; the quorum "
        + (word if spare >= 0 else _without_quorum(place, answers)),
        highlight=False,
        soft_wrap=True,
    )
    if remedy := FOUNDING if lacks_founders(answers) else _formatting(answers, spare):
        out.print(f"  next: {remedy}", highlight=False, soft_wrap=True)


def _without_quorum(place: options.JournalTarget, answers: Answers) -> str:
    """Return whether the quorum is lost; a node that could not be asked may serve and vote."""
    silent = [node for node in answers if state_of(node, answers) == "no answer"]
    if len(voters(own(answers))) + len(silent) < place.needed:
        return f"is lost: it takes {place.needed}"
    return (
        f"is not known, as {' and '.join(silent)} gave no answer: it takes {place.needed}. See the "
        "reasons above, and ask again with more time (--timeout 15)"
    )


def _formatting(answers: Answers, spare: int) -> str | None:
    """Return the commands that give nodes without storage their storage back, or None.

    Where others hold edits, it is never the initialization of the shared edits, which would replace
    those.
    """
    bare = [node for node in answers if state_of(node, answers) == "not formatted"]
    if not bare:
        return None
    if len(bare) == len(answers):
        return (
            "nnha namenode --format for a new file system, --initialize-shared-edits for one that"
            " exists"
        )
    if spare < 0:
        return "start the nodes that do not answer; then nnha journal status"
    return "; ".join(f"nnha journal format --node {node}" for node in bare)


def _remarks(node: NodeName, answers: Answers) -> list[str]:
    answer, stranger = answers[node], strangers(answers).get(node)
    if isinstance(answer, JournalError):
        return [str(answer)]
    said = [] if stranger is None else [stranger]
    if answer.HasField("failed_because"):
        said.append(f"stopped: {answer.failed_because}")
    if answer.is_learner and stranger is None:
        admits = "an active NameNode's writer admits it"
        if lacks_founders(answers):
            admits = "an operator admits it: no node has a vote, so no NameNode can become active"
        said.append(f"a learner: it copies what the others have, and has no vote until {admits}")
    if answer.damaged_segments:
        firsts = ", ".join(map(str, answer.damaged_segments))
        said.append(f"damaged segments, which it does not serve: {firsts}")
    if answer.HasField("disk_warning"):
        said.append(answer.disk_warning)
    return said


def _number(answer: pb.JournalStatus, field: str) -> str:
    return f"{getattr(answer, field):,}" if answer.HasField(field) else "-"  # type: ignore[arg-type]


def _via(answer: pb.JournalStatus) -> str | None:
    """Return what carries the batches of the open segment, as far as the node knows: lane or rpc.

    Without an open segment it is None.
    """
    if not answer.HasField("open_segment_first_txid"):
        return None
    return "lane" if answer.write_lanes else "rpc"


def _free(answer: pb.JournalStatus) -> str:
    part = 100 * answer.disk_free_bytes / max(1, answer.disk_total_bytes)
    return f"{part:.0f}% {answer.disk_free_bytes / 2**30:.0f}G"


def _status_json(node: NodeName, answers: Answers) -> dict[str, object]:
    answer = answers[node]
    told = pb.JournalStatus() if isinstance(answer, JournalError) else answer
    known = not isinstance(answer, JournalError)

    def given(field: str) -> object:
        return getattr(told, field) if told.HasField(field) else None  # type: ignore[arg-type]

    return {
        "node": node,
        "reachable": known,
        "reason": None if known else str(answer),
        "state": state_of(node, answers),
        "formatted": told.is_formatted if known else None,
        "promised_epoch": told.last_promised_epoch if known else None,
        "writer_epoch": told.last_writer_epoch if known else None,
        "last_txid": given("last_written_txid"),
        "committed_txid": given("committed_txid"),
        "behind": behind(told, answers) if known and node not in strangers(answers) else None,
        "open_segment": given("open_segment_first_txid"),
        "via": _via(told),
        "write_lanes": told.write_lanes if known else None,
        "learner": told.is_learner if known else None,
        "incarnation": told.incarnation or None,
        "damaged_segments": list(told.damaged_segments) if known else None,
        "failed_because": given("failed_because"),
        "disk_free_bytes": told.disk_free_bytes if known else None,
        "disk_total_bytes": told.disk_total_bytes if known else None,
        "disk_warning": given("disk_warning"),
    }


# ---- segments ----


def _show_segments(
    place: options.JournalTarget, held: Sequence[Row], nodes: Sequence[NodeName]
) -> None:
    table = Table(
        Column("segment", no_wrap=True),
        Column("writer", justify="right"),
        *(Column(node, no_wrap=True) for node in nodes),
        title=f"journal {place.uri.journal_id}",
    )
    for row in held:
        writers = sorted({copy.writer for copy in row.copies.values() if copy.writer})
        table.add_row(
            f"{row.first}-{row.last}",
            ",".join(map(str, writers)) or "-",
            *(_cell(row, node) for node in nodes),
        )
    console().print(table)


def _cell(row: Row, node: NodeName) -> str:
    if node in row.damaged:
        return "[bold red]DAMAGED[/]"
    copy = row.copies.get(node)
    if copy is None:
        return "-"
    digest = copy.digest.hex()[:8]
    text = f"final {digest}" if copy.finalized else f"open to {copy.last} {digest}"
    if node in row.forked:
        return f"[bold red]{text} DIFFERS[/]"
    return text.strip()


def _row_json(row: Row) -> dict[str, object]:
    return {
        "first_txid": row.first,
        "last_txid": row.last,
        "copies": [
            {
                "node": node,
                "last_txid": copy.last,
                "finalized": copy.finalized,
                "digest": copy.digest.hex() or None,
                "writer_epoch": copy.writer or None,
                "differs": node in row.forked,
            }
            for node, copy in sorted(row.copies.items())
        ],
        "damaged_on": row.damaged,
    }
