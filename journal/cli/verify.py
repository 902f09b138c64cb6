"""``nnha journal verify``: are all copies of the edits the same, and is none missing?"""

from collections.abc import Iterable, Mapping, Sequence

import click
from rich.table import Column, Table

from ha.console.exit_codes import UNHEALTHY, UNREACHABLE
from ha.console.output import console
from ha.daemon import event_loop
from journal.cli import options
from journal.cli.inventory import judge, rows
from journal.cli.learners import Learner, ask_learners, learner_lines, learner_rows
from journal.cli.status import ask_lists_and_learners, damaged_in
from journal.errors import QuorumLost
from journal.links.configuration import reader_settings
from journal.model import NodeName, Segment
from journal.reader.audit import Range
from journal.reader.verify import Verification, verify

Learners = Mapping[NodeName, Learner]


@click.command("verify")
@click.option("--deep", is_flag=True, help="Read every byte of every copy, and compare the bytes.")
@options.about_a_journal
def verify_command(
    *,
    place: options.JournalTarget,
    output: str,
    deep: bool,
) -> None:
    """Compare all nodes' copies: their lists and digests or, with --deep, every byte.

    A learner's copies are compared by their digests, and not counted.

    Exit status: 0 all is well; 6 no majority of the nodes can be reached; 8 copies differ, are
    damaged, or too few, or edits are missing.
    """
    well = _deep(place, output) if deep else _shallow(place, output)
    if not well:
        raise click.exceptions.Exit(UNHEALTHY)


def _shallow(place: options.JournalTarget, output: str) -> bool:
    listed, learners, failures = event_loop.run(ask_lists_and_learners(place))
    if len(listed) < place.needed:
        silent = [*failures, *((node, "a learner") for node in learners)]
        reasons = "; ".join(f"{node}: {why}" for node, why in silent)
        message = f"verifying needs {place.needed} of {len(place.nodes)} JournalNodes; {reasons}"
        raise options.NotDone(message, UNREACHABLE)
    held = rows(
        {node: segments for node, (_, segments) in listed.items()},
        {node: damaged_in(status) for node, (status, _) in listed.items()},
    )
    voters = [segment for _, segments in listed.values() for segment in segments]
    silent_count = len(failures) + len(learners)
    findings = judge(held, silent=silent_count, answering=len(listed))
    if output == "json":
        body = {
            "deep": False,
            "ok": not findings,
            "held": _merge((row.first, row.last) for row in held),
            "unreachable": dict(failures),
            "learners": learner_rows(learners, voters),
            "findings": [
                {"kind": f.kind, "first_txid": f.first, "nodes": f.nodes, "message": f.message}
                for f in findings
            ],
        }
        options.print_json(place, body)
        return not findings
    out = console()
    options.tell(out, [*failures, *learner_lines(learners, voters)])
    for finding in findings:
        out.print(
            f"[bold red]{finding.kind}[/]: {finding.message}", highlight=False, soft_wrap=True
        )
    ranges = _text(_merge((row.first, row.last) for row in held)) or "no transactions"
    verdict = f"{len(findings)} problems" if findings else "no difference, no gap"
    out.print(
        f"lists and digests of {ranges} on {len(listed)} nodes: {verdict}"
        " (--deep reads every byte)",
        highlight=False,
        soft_wrap=True,
    )
    return not findings


def _deep(place: options.JournalTarget, output: str) -> bool:
    try:
        result, learners = event_loop.run(_verify(place))
    except QuorumLost as lost:
        raise options.NotDone(str(lost), UNREACHABLE) from lost
    if output == "json":
        options.print_json(place, _verification_json(result, learners))
    else:
        _show_verification(place, result, learners)
    return not result.report.findings


async def _verify(place: options.JournalTarget) -> tuple[Verification, Learners]:
    result = await verify(place.nodes, place.address, reader_settings(place.conf))
    firsts = {segment.first for segment in _segments_of(result)}
    return result, await ask_learners(place, result.failures, firsts)


def _segments_of(result: Verification) -> list[Segment]:
    return [segment for view in result.views for segment in view.segments]


def _show_verification(
    place: options.JournalTarget, result: Verification, learners: Learners
) -> None:
    report = result.report
    table = Table(
        Column("node", no_wrap=True),
        "transactions",
        "segments",
        "state",
        title=f"journal {place.uri.journal_id}",
    )
    for view in result.views:
        ranges = _merge((s.first, s.last) for s in view.segments)
        closed = sum(segment.finalized for segment in view.segments)
        opened = len(view.segments) - closed
        segments = f"{closed} finalized" + (f", {opened} in progress" if opened else "")
        missing = report.missing[view.node]
        state = f"behind: lacks {_text(missing)}" if missing else "complete"
        if view.node in report.stale:
            state += "; holds an abandoned copy"
        table.add_row(view.node, _text(ranges) or "none", segments, state)
    for node, learner in sorted(learners.items()):
        ranges = _merge((s.first, s.last) for s in learner.segments)
        table.add_row(node, _text(ranges) or "none", f"{len(learner.segments)} known", "learner")
    silent = {node: str(why) for node, why in result.failures.items() if node not in learners}
    for node in sorted(silent):
        table.add_row(node, "?", "?", "not reachable")
    out = console()
    out.print(table)
    options.tell(out, [*sorted(silent.items()), *learner_lines(learners, _segments_of(result))])
    for node, told in sorted(report.stale.items()):
        for line in told:
            out.print(f"note: {node}: {line}", highlight=False, soft_wrap=True)
    if report.unconfirmed:
        out.print(
            f"note: {_text(report.unconfirmed)} cannot be confirmed on a majority while nodes"
            " are not reachable",
            soft_wrap=True,
        )
    for finding in report.findings:
        out.print(
            f"[bold red]{finding.kind}[/]: {finding.message}", highlight=False, soft_wrap=True
        )
    compared = f"{_text(report.held) or 'no transactions'} compared on {len(result.views)} nodes"
    verdict = f"{len(report.findings)} problems" if report.findings else "no difference, no gap"
    out.print(f"{compared}: {verdict}", highlight=False, soft_wrap=True)


def _verification_json(result: Verification, learners: Learners) -> dict[str, object]:
    report = result.report
    nodes: list[dict[str, object]] = [
        {
            "node": view.node,
            "reachable": True,
            "segments": [
                {"first": s.first, "last": s.last, "finalized": s.finalized} for s in view.segments
            ],
            "ranges": _merge((s.first, s.last) for s in view.segments),
            "missing": report.missing[view.node],
            "stale": report.stale.get(view.node, ()),
        }
        for view in result.views
    ]
    nodes += [
        {"node": node, "reachable": False, "reason": str(failure)}
        for node, failure in sorted(result.failures.items())
        if node not in learners
    ]
    return {
        "deep": True,
        "ok": not report.findings,
        "held": report.held,
        "settled_txid": result.settled,
        "unconfirmed": report.unconfirmed,
        "nodes": nodes,
        "learners": learner_rows(learners, _segments_of(result)),
        "findings": [
            {"kind": f.kind, "first_txid": f.first, "nodes": f.nodes, "message": f.message}
            for f in report.findings
        ],
    }


def _merge(ranges: Iterable[Range]) -> list[Range]:
    merged: list[Range] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged


def _text(ranges: Sequence[Range]) -> str:
    shown = [f"{first}-{last}" if first != last else str(first) for first, last in ranges[:5]]
    more = f" and {len(ranges) - 5} more" if len(ranges) > 5 else ""
    return ", ".join(shown) + more
