"""``nnha doctor``: checks the cluster before a failover needs it, and says what to do."""

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence

import click
from rich.text import Text

from ha.cli.explain.doctor import local
from ha.cli.explain.doctor.cluster import check_clocks, check_cluster
from ha.cli.explain.doctor.forwarders import check_forwarders
from ha.cli.explain.doctor.move import ask_namenodes, check_move
from ha.cli.explain.doctor.znodes import check_znodes
from ha.cluster.agreement import skews
from ha.cluster.check_result import Finding, Severity
from ha.cluster.daemon_queries import look_at
from ha.conf.keys import cluster as keys
from ha.console.cluster_options import ClusterCommand, about_a_cluster
from ha.console.exit_codes import DONE, UNHEALTHY, UNREACHABLE
from ha.console.output import plain, show
from ha.console.result import API_VERSION
from ha.daemon import event_loop

LOOK_SECONDS = 3.0
_STYLE = {
    Severity.OK: "green",
    Severity.WARN: "yellow",
    Severity.FAIL: "bold red",
    Severity.UNKNOWN: "dim",
}


@click.command()
@about_a_cluster("doctor", timeout_seconds=LOOK_SECONDS)
@click.option("-q", "--quiet", is_flag=True, help="Show only problems.")
def doctor(*, place: ClusterCommand, quiet: bool) -> None:
    """Check configuration, names, quorums, clocks, fencing, rights, disks and notices.

    Changes nothing.  Exits 0 if no check fails (there may be warnings), 8 if one fails, 6 if
    none fails and a process gave no answer in time.
    """
    findings, silent = event_loop.run(_check(place))
    shown = [one for one in findings if not quiet or one.verdict is not Severity.OK]
    show(place.output, _as_json(place, findings), _as_text(shown, findings))
    bad = any(one.verdict is Severity.FAIL for one in findings)
    sys.exit(UNHEALTHY if bad else UNREACHABLE if silent else DONE)


async def _check(place: ClusterCommand) -> tuple[list[Finding], bool]:
    """Return all findings, and whether a process gave no answer."""
    configuration, nameservice = place.configuration, place.nameservice
    automatic = configuration.get(keys.AUTO_FAILOVER, nameservice=nameservice)
    view, names, facts, znodes = await asyncio.gather(
        look_at(configuration, nameservice, deadline_seconds=place.timeout_seconds),
        local.check_names(configuration, nameservice),
        ask_namenodes(configuration, nameservice, seconds=LOOK_SECONDS),
        check_znodes(place, seconds=place.timeout_seconds) if automatic else _nothing(),
    )
    found: list[Finding] = [*local.check_configuration(configuration), *names]
    found += local.check_ignored(configuration)
    found += local.check_clients(configuration)
    found += local.check_security(configuration)
    found += check_forwarders(configuration, nameservice)
    found += check_cluster(view)
    found += znodes
    found += check_move(configuration, nameservice, facts)
    found += check_clocks(skews((*view.namenodes, *view.zkfcs)))
    found += local.check_fencing(configuration, nameservice) if automatic else ()
    found += local.check_credentials(configuration, nameservice)
    found += local.check_machine()
    return found, bool(view.silent)


async def _nothing() -> list[Finding]:
    return []


def _as_json(place: ClusterCommand, findings: Sequence[Finding]) -> Mapping[str, object]:
    return {
        "apiVersion": API_VERSION,
        "command": "doctor",
        "nameservice": place.nameservice,
        **_counts(findings),
        "checks": [one.as_json() for one in findings],
    }


def _counts(findings: Sequence[Finding]) -> dict[str, int]:
    return {verdict.value: sum(one.verdict is verdict for one in findings) for verdict in Severity}


def _as_text(shown: Sequence[Finding], findings: Sequence[Finding]) -> Text:
    width = max((len(one.check) for one in shown), default=0)
    lines = [line for one in shown for line in _lines(one, width)]
    counts = ", ".join(f"{count} {name}" for name, count in _counts(findings).items() if count)
    return Text("\n").join([*lines, Text(counts)])


def _lines(one: Finding, width: int) -> Iterator[Text]:
    yield Text.assemble(
        (f"{one.verdict.value.upper():<7}", _STYLE[one.verdict]),
        f"  {plain(one.check):<{width}}  {plain(one.found)}",
    )
    if one.next:
        yield Text(f"{'':<9}{'':<{width}}  → {plain(one.next)}")
