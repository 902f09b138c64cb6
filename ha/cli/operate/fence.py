"""``nnha fence``: what fencing a NameNode would do, or a real try of it."""

import sys
from collections.abc import Iterator, Mapping

import click
from rich.text import Text

from fencing.model import FencingReport, MethodSpec
from ha.cli.explain.doctor.local import method_finding
from ha.cluster.check_result import Severity
from ha.conf.topology import NameNodeAddress, namenode
from ha.console.cluster_options import ClusterCommand, about_a_cluster
from ha.console.command_audit import CommandAudit
from ha.console.completion import namenode_ids
from ha.console.exit_codes import DONE, FAILED
from ha.console.output import plain, show
from ha.console.result import API_VERSION, Code, CommandOutcome, Ended, Ending
from ha.daemon import event_loop
from ha.record import dataclass
from ha.zkfc.settings.settings import FencingPlan, fencing_plan
from ha.zkfc.takeover.planned_fence import fence_as_planned, target_at


@click.group()
def fence() -> None:
    """Show and test the fencing methods."""


@fence.command()
@click.argument("node", shell_complete=namenode_ids)
@click.option("--method", "number", type=int, default=None, help="Only this one, counted from 1.")
@click.option("--really", is_flag=True, help="Run the methods: the NameNode will be killed.")
@about_a_cluster("fence test", timeout_seconds=None)
def test(*, place: ClusterCommand, node: str, number: int | None, really: bool) -> None:
    """Show how NODE would be fenced, in which order and within which limits.

    With --really the methods run against a NameNode that may be serving: use a standby, or a time
    when a failover does no harm.  Exits 0 if it was fenced, 4 if no method succeeded.
    """
    address = namenode(place.configuration, place.nameservice, node)
    plan = fencing_plan(place.configuration, address.nameservice, address.namenode)
    if not plan.methods:
        raise Ended(_no_method(node))
    methods = tuple(enumerate(plan.methods, start=1))
    if number is not None:
        if not 1 <= number <= len(methods):
            raise click.UsageError(f"there are methods 1 to {len(methods)}.")
        methods = (methods[number - 1],)
    trial = Trial(address, plan, methods)
    if really and place.output == "table":
        # Fencing may take a minute, so what it will do is shown before it begins.
        show(place.output, {}, _text(trial.plan_lines()))
    if not really:
        show(place.output, trial.as_json(None), _text(trial.lines(None)))
        return
    audit = CommandAudit.configured(place.configuration)
    with audit.telling("fence test", f"{address.nameservice}.{address.namenode}"):
        report = event_loop.run(trial.run())
        show(place.output, trial.as_json(report), _text(trial.lines(report)))
        sys.exit(DONE if report.fenced else FAILED)


def _no_method(node: str) -> Ending:
    return Ending(
        "fence test",
        CommandOutcome.REFUSED,
        Code.BAD_CONFIGURATION,
        f"{node} has no fencing method",
        hint="set dfs.ha.fencing.methods to one method a line",
        target=node,
    )


@dataclass(frozen=True, slots=True)
class Trial:
    """Which NameNode is to be fenced, by which methods, each with its configured number."""

    address: NameNodeAddress
    plan: FencingPlan
    methods: tuple[tuple[int, MethodSpec], ...]

    async def run(self) -> FencingReport:
        """Run the methods until one succeeds."""
        chosen = tuple(method for _, method in self.methods)
        return await fence_as_planned(self.plan, target_at(self.address), only=chosen)

    def as_json(self, report: FencingReport | None) -> Mapping[str, object]:
        """Return fixed keys, with the schema ha/cli/schemas/fence-test.json."""
        result = "shown" if report is None else "fenced" if report.fenced else "not_fenced"
        return {
            "apiVersion": API_VERSION,
            "command": "fence test",
            "nameservice": self.address.nameservice,
            "namenode": self.address.namenode,
            "address": str(self.address.service),
            "result": result,
            "proven_gone": report is not None and report.proven_gone,
            "exit_code": FAILED if result == "not_fenced" else DONE,
            "method_timeout_seconds": self.plan.method_timeout_seconds,
            "total_timeout_seconds": self.plan.total_timeout_seconds,
            "methods": [
                {"number": number, "method": str(method), "proves_gone": method.proves_gone}
                for number, method in self.methods
            ],
            "attempts": [
                {
                    "method": attempt.method,
                    "outcome": attempt.outcome.value,
                    "detail": attempt.detail,
                    "seconds": round(attempt.duration_seconds, 3),
                    "output": attempt.output,
                }
                for attempt in (() if report is None else report.attempts)
            ],
        }

    def plan_lines(self) -> Iterator[str]:
        """Yield the lines that describe what would be done."""
        at = self.address
        yield f"{at.nameservice}.{at.namenode} at {at.service}: first it is asked"
        yield "to become standby; if it does not confirm that, in this order until one succeeds:"
        for number, method in self.methods:
            means = (
                "a success means that it serves no client any more"
                if method.proves_gone
                else "a success fences edits only; it may serve reads until its lease ends, or, as "
                "Hadoop's has none, until it learns of its successor"
            )
            yield f"  {number}. {method}  ({means})"
            doubt = method_finding("", method, at, self.plan.ssh)
            if doubt.verdict is not Severity.OK:
                yield f"     ! {doubt.found}  → {doubt.next}"
        yield (
            f"Limits: {self.plan.method_timeout_seconds:g} s for each, "
            f"{self.plan.total_timeout_seconds:g} s for all."
        )

    def lines(self, report: FencingReport | None) -> Iterator[str]:
        """Yield the lines that describe what was done, or would be."""
        if report is None:
            yield from self.plan_lines()
            yield "Nothing was done. Run them with: --really"
            return
        for attempt in report.attempts:
            seconds = f"{attempt.duration_seconds:.2f} s"
            yield f"{attempt.method}: {attempt.outcome} in {seconds}: {attempt.detail}"
            for line in attempt.output.splitlines():
                yield f"    {line}"
        if not report.fenced:
            yield "It was NOT fenced."
        elif report.proven_gone:
            yield "It was fenced: it serves no client any more."
        else:
            yield "Its edits are fenced, but its reads are not: the journal refuses its edits from"
            yield "the next epoch on, and there is no proof that it has ended."


def _text(lines: Iterator[str]) -> Text:
    return Text("\n".join(plain(line) for line in lines))
