"""``nnha journal``: are all copies of the edits the same, and how does each node fare?"""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Column, Table

from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.topology import JournalUri, namenodes, nameservice_of, shared_edits
from journal.client.audit import Range
from journal.client.configured import reader_settings
from journal.client.remote import JournalAddress
from journal.client.verify import Verification, ask_status, verify
from journal.errors import JournalError, QuorumLost
from journal.model import JournalId, NodeName
from journal.proto import journal_pb2 as pb
from journal.quorum import majority

EXIT_UNREACHABLE = 6
EXIT_DIFFERENT = 8
STATUS_TIMEOUT_SECONDS = 5.0

_conf_dir = click.option(
    "--conf-dir",
    "-conf-dir",
    type=click.Path(path_type=Path),
    default=None,
    help="Folder with core-site.xml and hdfs-site.xml; $HADOOP_CONF_DIR if not given.",
)
_override = click.option(
    "-D", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a key."
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


@click.group()
def journal() -> None:
    """Look into the quorum journal."""


@journal.command("verify")
@_conf_dir
@_override
@_as_json
def verify_command(conf_dir: Path | None, overrides: Sequence[str], as_json: bool) -> None:  # noqa: FBT001 - click's
    """Read all edits on all nodes and compare them.

    Exit status: 0 all is well; 6 no majority of the nodes can be reached; 8 copies differ, are
    damaged, or too few, or edits are missing.
    """
    conf, uri, address = _place(conf_dir, overrides)
    nodes = [(node.host, node.port) for node in uri.nodes]
    try:
        result = asyncio.run(verify(nodes, address, reader_settings(conf)))
    except QuorumLost as lost:
        raise _failure(str(lost), EXIT_UNREACHABLE) from lost
    if as_json:
        click.echo(json.dumps(_verification_json(uri, result), indent=2))
    else:
        _show_verification(uri, result)
    if result.report.findings:
        raise click.exceptions.Exit(EXIT_DIFFERENT)


@journal.command("status")
@_conf_dir
@_override
@_as_json
def status_command(conf_dir: Path | None, overrides: Sequence[str], as_json: bool) -> None:  # noqa: FBT001 - click's
    """Ask each node what it has promised and holds.

    Exit status: 0 a majority answers and serves; 6 it does not.
    """
    _, uri, address = _place(conf_dir, overrides)
    nodes = [(node.host, node.port) for node in uri.nodes]
    answers = asyncio.run(ask_status(nodes, address, STATUS_TIMEOUT_SECONDS))
    if as_json:
        rows = [_status_json(node, answer) for node, answer in answers.items()]
        click.echo(json.dumps({"journal": uri.journal_id, "nodes": rows}, indent=2))
    else:
        _show_status(uri, answers)
    well = [a for a in answers.values() if isinstance(a, pb.JournalStatus) and _serves(a)]
    if len(well) < majority(len(answers)):
        raise click.exceptions.Exit(EXIT_UNREACHABLE)


def _place(
    conf_dir: Path | None, overrides: Sequence[str]
) -> tuple[Configuration, JournalUri, JournalAddress]:
    try:
        conf = load_configuration(conf_dir, overrides)
        nameservice = nameservice_of(conf)
        # Every NameNode of a nameservice has the same shared edits, so any one will do.
        uri = shared_edits(conf, nameservice, namenodes(conf, nameservice)[0].namenode)
    except ConfigurationError as error:
        raise _failure(str(error), 1) from error
    return conf, uri, JournalAddress(JournalId(uri.journal_id), nameservice)


def _failure(message: str, code: int) -> click.exceptions.Exit:
    click.echo(f"Error: {message}", err=True)
    return click.exceptions.Exit(code)


# ---- verify ----


def _show_verification(uri: JournalUri, result: Verification) -> None:
    report = result.report
    table = Table(
        Column("node", no_wrap=True),
        "transactions",
        "segments",
        "state",
        title=f"journal {uri.journal_id}",
    )
    for view in result.views:
        ranges = _merged((s.first, s.last) for s in view.segments)
        closed = sum(segment.finalized for segment in view.segments)
        opened = len(view.segments) - closed
        segments = f"{closed} finalized" + (f", {opened} in progress" if opened else "")
        missing = report.missing[view.node]
        state = f"behind: lacks {_text(missing)}" if missing else "complete"
        if view.node in report.stale:
            state += "; holds an abandoned copy"
        table.add_row(view.node, _text(ranges) or "none", segments, state)
    for node in sorted(result.failures):
        table.add_row(node, "?", "?", "not reachable")
    console = Console()
    console.print(table)
    _tell_failures(console, result.failures)
    for node, told in sorted(report.stale.items()):
        for line in told:
            console.print(f"note: {node}: {line}", highlight=False, soft_wrap=True)
    if report.unconfirmed:
        console.print(
            f"note: {_text(report.unconfirmed)} cannot be confirmed on a majority while nodes"
            " are not reachable",
            soft_wrap=True,
        )
    for finding in report.findings:
        console.print(
            f"[bold red]{finding.kind}[/]: {finding.message}", highlight=False, soft_wrap=True
        )
    compared = f"{_text(report.held) or 'no transactions'} compared on {len(result.views)} nodes"
    verdict = f"{len(report.findings)} problems" if report.findings else "no difference, no gap"
    console.print(f"{compared}: {verdict}", highlight=False, soft_wrap=True)


def _verification_json(uri: JournalUri, result: Verification) -> dict[str, object]:
    report = result.report
    nodes: list[dict[str, object]] = [
        {
            "node": view.node,
            "reachable": True,
            "segments": [
                {"first": s.first, "last": s.last, "finalized": s.finalized} for s in view.segments
            ],
            "ranges": _merged((s.first, s.last) for s in view.segments),
            "missing": report.missing[view.node],
            "stale": report.stale.get(view.node, ()),
        }
        for view in result.views
    ]
    nodes += [
        {"node": node, "reachable": False, "reason": str(failure)}
        for node, failure in sorted(result.failures.items())
    ]
    return {
        "journal": uri.journal_id,
        "ok": not report.findings,
        "held": report.held,
        "settled_txid": result.settled,
        "unconfirmed": report.unconfirmed,
        "nodes": nodes,
        "findings": [
            {"kind": f.kind, "first_txid": f.first, "nodes": f.nodes, "message": f.message}
            for f in report.findings
        ],
    }


def _merged(ranges: Iterable[Range]) -> list[Range]:
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


# ---- status ----


def _serves(status: pb.JournalStatus) -> bool:
    return status.is_formatted and not status.HasField("failed_because")


def _show_status(
    uri: JournalUri, answers: Mapping[NodeName, pb.JournalStatus | JournalError]
) -> None:
    table = Table(
        Column("node", no_wrap=True), "epoch", "last txid", "committed", "open", "free", "state",
        title=f"journal {uri.journal_id}",
    )  # fmt: skip
    told: dict[NodeName, object] = {
        node: answer for node, answer in answers.items() if isinstance(answer, JournalError)
    }
    for node, answer in answers.items():
        if isinstance(answer, JournalError):
            table.add_row(node, *["?"] * 5, "not reachable")
            continue
        state = "serves" if _serves(answer) else "not formatted"
        if answer.HasField("failed_because"):
            state = "stopped"
            told[node] = answer.failed_because
        table.add_row(
            node,
            str(answer.last_promised_epoch),
            str(answer.last_written_txid) if answer.HasField("last_written_txid") else "-",
            str(answer.committed_txid) if answer.HasField("committed_txid") else "-",
            str(answer.open_segment_first_txid)
            if answer.HasField("open_segment_first_txid")
            else "-",
            f"{answer.disk_free_bytes / 2**30:.1f} GiB",
            state,
        )
    console = Console()
    console.print(table)
    _tell_failures(console, told)


def _tell_failures(console: Console, failures: Mapping[NodeName, object]) -> None:
    """Below the table, where a long reason has room."""
    for node, failure in sorted(failures.items()):
        console.print(f"{node}: {failure}", highlight=False, soft_wrap=True, markup=False)


def _status_json(node: NodeName, answer: pb.JournalStatus | JournalError) -> dict[str, object]:
    if isinstance(answer, JournalError):
        return {"node": node, "reachable": False, "reason": str(answer)}

    def given(field: str) -> object:
        return getattr(answer, field) if answer.HasField(field) else None  # type: ignore[arg-type]

    return {
        "node": node,
        "reachable": True,
        "formatted": answer.is_formatted,
        "promised_epoch": answer.last_promised_epoch,
        "writer_epoch": answer.last_writer_epoch,
        "last_txid": given("last_written_txid"),
        "committed_txid": given("committed_txid"),
        "open_segment": given("open_segment_first_txid"),
        "failed_because": given("failed_because"),
        "disk_free_bytes": answer.disk_free_bytes,
        "disk_total_bytes": answer.disk_total_bytes,
    }
