"""``nnha journal recover --dry-run``: what a new writer would make of the newest segment."""

from collections.abc import Mapping

import click
from rich.table import Column, Table

from ha.console.exit_codes import UNHEALTHY, UNREACHABLE
from ha.console.output import console
from ha.daemon import event_loop
from journal.cli import options
from journal.cli.status import FOUNDING
from journal.errors import InvariantBroken, JournalError, NotAdmitted
from journal.links import codec
from journal.links.quorum_call import good
from journal.links.remote_node import RemoteNode
from journal.model import NodeName, TxId
from journal.proto import journal_pb2 as pb
from journal.recovery import Answer, Copy, Empty, HeldSegment, Skip, choose

Chosen = Copy | Skip | str | None
"""The decision, or why there can be none; None where there is nothing to decide."""


@click.command("recover")
@click.option("--dry-run", is_flag=True, help="Only report; this command cannot do anything else.")
@options.about_a_journal
def recover_command(
    *,
    place: options.JournalTarget,
    output: str,
    dry_run: bool,
) -> None:
    """Show what recovery would choose for the newest segment, from which node, and why.

    No promise changes and no segment is closed; a segment that a writer has open stays open.

    Exit status: 0 it would succeed; 3 without --dry-run; 6 no majority of the voting nodes
    answers; 8 the copies contradict each other, and a recovery would stop.
    """
    if not dry_run:
        raise options.refused(
            "recovery is the work of the NameNode that becomes active",
            (),
            "nnha journal recover --dry-run, or nnha haadmin -failover",
        )
    first, answers = event_loop.run(_ask(place))
    told: dict[NodeName, Answer] = good(answers)
    chosen: Chosen = None
    if len(told) >= place.needed and first is not None:
        try:
            chosen = choose(first, told)
        except InvariantBroken as broken:
            chosen = str(broken)
    if output == "json":
        options.print_json(place, _json(place, first, answers, chosen))
    else:
        _show(place, first, answers, chosen)
    if len(told) < place.needed:
        raise click.exceptions.Exit(UNREACHABLE)
    if isinstance(chosen, str):
        raise click.exceptions.Exit(UNHEALTHY)


async def _ask(
    place: options.JournalTarget,
) -> tuple[TxId | None, dict[NodeName, Answer | JournalError]]:
    """Return where the newest segment starts, and what each node that has a vote holds of it."""

    async def newest(remote: RemoteNode) -> pb.PrepareRecoveryReply:
        await _require_vote(remote, place.timeout_seconds)
        return await remote.peek_recovery(None, place.timeout_seconds)

    replies = good(await options.ask_each(place, newest))
    starts = [r.segment.first_txid for r in replies.values() if r.HasField("segment")]
    first = TxId(max(starts)) if starts else None

    async def held(remote: RemoteNode) -> Answer:
        await _require_vote(remote, place.timeout_seconds)
        return codec.answer_from_wire(await remote.peek_recovery(first, place.timeout_seconds))

    return first, await options.ask_each(place, held)


async def _require_vote(remote: RemoteNode, timeout_seconds: float) -> None:
    if (await remote.status(timeout_seconds)).is_learner:
        raise NotAdmitted("a learner: a recovery does not ask it")


def _show(
    place: options.JournalTarget,
    first: TxId | None,
    answers: Mapping[NodeName, Answer | JournalError],
    chosen: Chosen,
) -> None:
    out = console()
    if first is not None:
        table = Table(
            Column("node", no_wrap=True),
            "holds",
            Column("written by", justify="right"),
            Column("accepted in", justify="right"),
            Column("knows committed", justify="right"),
            Column("digest", no_wrap=True),
            title=f"journal {place.uri.journal_id}, segment {first}",
        )
        for node, answer in answers.items():
            table.add_row(node, *_cells(answer))
        out.print(table)
    options.tell(out, options.bad(answers))
    out.print(
        _verdict(place, first, answers, chosen), highlight=False, soft_wrap=True, markup=False
    )


def _cells(answer: Answer | JournalError) -> tuple[str, ...]:
    match answer:
        case HeldSegment():
            held = answer.segment
            return (
                f"{held.first}-{held.last} {'finalized' if held.finalized else 'in progress'}",
                str(held.writer or "-"),
                str(answer.accepted_in or "-"),
                str(answer.committed or "-"),
                held.digest.hex()[:16],
            )
        case Empty():
            return ("nothing", "-", "-", str(answer.committed or "-"), "-")
        case _:
            return ("?",) * 5


def _verdict(
    place: options.JournalTarget,
    first: TxId | None,
    answers: Mapping[NodeName, Answer | JournalError],
    chosen: Chosen,
) -> str:
    told: dict[NodeName, Answer] = good(answers)
    if len(told) < place.needed:
        learners = [a for a in answers.values() if isinstance(a, NotAdmitted)]
        remedy = "Start more nodes, then run this again."
        if len(learners) == len(answers):
            remedy = f"No node has a vote yet → {FOUNDING}."
        return (
            f"recovery cannot begin: {len(told)} voting nodes answer, it takes {place.needed}."
            f" Nothing was changed. {remedy}"
        )
    match chosen:
        case None:
            return "the journal has no edit yet: a writer would begin at transaction 1"
        case Skip():
            return f"segment {first} would be left out: no answering node holds an edit of it"
        case Copy():
            return _why(chosen, told)
        case str():
            return (
                f"recovery would stop, and the NameNode would not become active: {chosen}."
                " Nothing was changed. Next: nnha journal verify --deep"
            )


def _why(chosen: Copy, told: Mapping[NodeName, Answer]) -> str:
    segment, best = chosen.segment, chosen.sources[0]
    held = [answer for answer in told.values() if isinstance(answer, HeldSegment)]
    if all(node in chosen.sources for node in told):
        why = "all copies are the same"
    elif segment.finalized:
        why = "a finalized copy wins"
    elif len({_standing(answer) for answer in held}) > 1:
        why = "the copy of the newest writer or recovery wins"
    else:
        why = "among copies of one writer the longest wins"
    replaced = [node for node in sorted(told) if node not in chosen.sources]
    copies = f"; {', '.join(replaced)} would copy it" if replaced else ""
    done = " It is finalized already." if segment.finalized and not replaced else ""
    return (
        f"recovery would choose {segment.first}-{segment.last} from {best}: {why}{copies}."
        f"{done} If other nodes answer, the result may end at another transaction, but not "
        "before a committed one."
    )


def _standing(answer: HeldSegment) -> int:
    return max(answer.accepted_in, answer.segment.writer)


def _json(
    place: options.JournalTarget,
    first: TxId | None,
    answers: Mapping[NodeName, Answer | JournalError],
    chosen: Chosen,
) -> dict[str, object]:
    copy = chosen if isinstance(chosen, Copy) else None
    return {
        "segment_first_txid": first,
        "outcome": "stops"
        if isinstance(chosen, str)
        else "copies"
        if copy is not None
        else "skips"
        if isinstance(chosen, Skip)
        else "nothing",
        "chosen_last_txid": None if copy is None else copy.segment.last,
        "chosen_digest": None if copy is None else copy.segment.digest.hex(),
        "sources": None if copy is None else list(copy.sources),
        "because": _verdict(place, first, answers, chosen),
        "nodes": [_node_json(node, answer) for node, answer in answers.items()],
    }


def _node_json(node: NodeName, answer: Answer | JournalError) -> dict[str, object]:
    held = answer if isinstance(answer, HeldSegment) else None
    known = None if isinstance(answer, JournalError) else answer
    return {
        "node": node,
        "answered": known is not None,
        "reason": str(answer) if known is None else None,
        "last_txid": None if held is None else held.segment.last,
        "finalized": None if held is None else held.segment.finalized,
        "digest": None if held is None else held.segment.digest.hex(),
        "writer_epoch": None if held is None else held.segment.writer or None,
        "accepted_in_epoch": None if held is None else held.accepted_in or None,
        "committed_txid": None if known is None else known.committed,
    }
