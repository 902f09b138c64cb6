"""``nnha fence``: what fencing a NameNode would do, or a real try of it."""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import click

from fencing.fencer import fence as run_methods
from fencing.model import MethodSpec, Target, proves_gone, shown
from ha.cli.exits import DONE, FAILED, REFUSED, USAGE
from ha.conf.configuration import load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.topology import NameNodeAddress, namenode, nameservice_of
from ha.zkfc.settings import FencingPlan, fencing_plan


@click.group()
def fence() -> None:
    """Try the fencing methods before they are needed."""


@fence.command()
@click.argument("node")
@click.option("--method", "number", type=int, default=None, help="Only this one, counted from 1.")
@click.option("--really", is_flag=True, help="Run the methods: the NameNode will be killed.")
@click.option(
    "--conf-dir",
    type=click.Path(path_type=Path),
    default=None,
    help="Folder with core-site.xml and hdfs-site.xml; $HADOOP_CONF_DIR if not given.",
)
@click.option("-D", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a key.")
@click.option("-ns", "--nameservice", default=None, help="Which nameservice, if several.")
def test(
    *,
    node: str,
    number: int | None,
    really: bool,
    conf_dir: Path | None,
    overrides: tuple[str, ...],
    nameservice: str | None,
) -> None:
    """Show how NODE would be fenced, in which order and within which limits.

    With --really the methods run, against a NameNode that may be serving: use a standby, or
    a time when a failover does no harm.  Exits 0 if it was fenced, 4 if no method succeeded.
    """
    try:
        configuration = load_configuration(conf_dir, overrides)
        address = namenode(configuration, nameservice or nameservice_of(configuration), node)
        plan = fencing_plan(configuration, address.nameservice, address.namenode)
    except ConfigurationError as error:
        click.echo(f"nnha fence test: {error}", err=True)
        sys.exit(USAGE)
    methods = plan.methods
    if number is not None and not 1 <= number <= len(methods):
        click.echo(f"nnha fence test: there are methods 1 to {len(methods)}.", err=True)
        sys.exit(USAGE)
    if number is not None:
        methods = (methods[number - 1],)
    if not methods:
        click.echo(
            f"REFUSED (nothing was done): {node} has no fencing method; set "
            "dfs.ha.fencing.methods to one method a line.",
            err=True,
        )
        sys.exit(REFUSED)
    _show(address, plan, methods)
    if not really:
        click.echo("Nothing was done. Run them with: --really")
        sys.exit(DONE)
    sys.exit(asyncio.run(_run(address, replace(plan, methods=methods))))


def _show(address: NameNodeAddress, plan: FencingPlan, methods: tuple[MethodSpec, ...]) -> None:
    click.echo(f"{address.nameservice}.{address.namenode} at {address.service}: first it is asked")
    click.echo("to become standby; if it does not confirm that, in this order until one succeeds:")
    for position, method in enumerate(methods, start=1):
        means = (
            "a success means that it serves nobody any more"
            if proves_gone(method)
            else "a success fences edits only; it may serve reads until its lease ends"
        )
        click.echo(f"  {position}. {shown(method)}  ({means})")
    click.echo(
        f"Limits: {plan.method_timeout_seconds:g} s for each, {plan.total_timeout_seconds:g} s "
        "for all."
    )


async def _run(address: NameNodeAddress, plan: FencingPlan) -> int:
    report = await run_methods(
        plan.methods,
        Target(address.nameservice, address.namenode, address.service.host, address.service.port),
        environment=plan.environment,
        method_timeout_seconds=plan.method_timeout_seconds,
        total_timeout_seconds=plan.total_timeout_seconds,
        ssh=plan.ssh,
    )
    for attempt in report.attempts:
        seconds = f"{attempt.duration_seconds:.2f} s"
        click.echo(f"{attempt.method}: {attempt.outcome} in {seconds}: {attempt.detail}")
        for line in attempt.output.splitlines():
            click.echo(f"    {line}")
    click.echo("It was fenced." if report.fenced else "It was NOT fenced.")
    return DONE if report.fenced else FAILED
