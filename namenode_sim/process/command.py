"""``nnha namenode``: run a NameNode, or do one of the things of ``startup.modes`` instead."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.hazards import Daemon
from ha.conf.keys.security import SECURITY_MODE
from ha.console.exit_codes import UNEXPECTED
from ha.console.log_options import log_options
from ha.console.options import Seconds, ask_letter, configuration, confirmed
from ha.daemon.end_code import end_code
from ha.daemon.exposure import certificates, check_exposure, log_in_as
from ha.daemon.facts import publish_facts
from ha.daemon.logs import LogOptions, configure_logging
from ha.daemon.private_files import private_files
from ha.daemon.process import ExitWith, run_daemon
from ha.daemon.start_check import check_start
from ha.security.caller import Role
from ha.security.own_tls import act_as
from hadoop.errors import StorageError
from journal.errors import JournalError
from namenode_sim.edits.errors import EditsError
from namenode_sim.image.errors import ImageError
from namenode_sim.process.daemon import run_namenode
from namenode_sim.process.listeners import doors
from namenode_sim.startup.identity import NameNodeIdentity
from namenode_sim.startup.modes import MODES, NOT_BUILT, Mode, Request, new_cluster_id
from namenode_sim.startup.questions import Consent

F = TypeVar("F", bound=Callable[..., Any])


def _mode_options(command: F) -> F:
    """Add a flag for each mode, and one for each unbuilt mode, to refuse that by name."""
    for mode in reversed(MODES):
        command = click.option(
            *mode.spellings, f"mode_{mode.name}", is_flag=True, help=mode.summary
        )(command)
    for spelling in NOT_BUILT:
        command = click.option(
            spelling, f"unbuilt_{spelling[1:].lower()}", flag_value="", is_flag=False, hidden=True
        )(command)
    return command


@click.command()
@configuration
@log_options
@_mode_options
@click.option(
    "--genclusterid", "-genclusterid", is_flag=True, help="Print a new cluster id and exit."
)
@click.option("-regular", is_flag=True, hidden=True, help="Just serve: the default.")
@click.option(
    "--cluster-id", "-clusterid", help="With --format and --prepare --found: the new cluster's id."
)
@click.option(
    "--found",
    "may_found",
    is_flag=True,
    help="With --prepare: where there is no file system anywhere, make one; for one NameNode only.",
)
@click.option(
    "--wait",
    "wait_seconds",
    type=Seconds(min=0.0, max=86400.0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="With --prepare: how long to wait for JournalNodes and other NameNodes.",
)
@click.option(
    "--force", "-force", is_flag=True, help="Answer yes to every question; erase what is there."
)
@click.option(
    "--non-interactive",
    "-nonInteractive",
    is_flag=True,
    help="Never ask; refuse what would be asked for.",
)
@click.option(
    "--skip-shared-edits-check",
    "-skipSharedEditsCheck",
    is_flag=True,
    help="With --bootstrap-standby: do not ask the JournalNodes for the edits that follow.",
)
def namenode(  # noqa: PLR0913 - its options
    *,
    conf_dir: Path | None,
    overrides: tuple[str, ...],
    genclusterid: bool,
    cluster_id: str | None,
    force: bool,
    non_interactive: bool,
    skip_shared_edits_check: bool,
    may_found: bool,
    wait_seconds: float,
    log_as: LogOptions,
    **modes: object,
) -> None:
    """Run a NameNode.  It starts as standby; its ZKFC or an operator makes it active.

    Exit codes: 0 stopped on request or done, 1 could not start, was refused or failed, 2 wrong
    usage, 78 would be open to strangers (nnha.security.mode); --bootstrap-standby has Hadoop's: 2
    no NameNode answers, 3 wrong version, 5 already formatted, 6 the journal lacks edits, and 4 for
    an image that could not be fetched; --prepare refuses with 3.  The reason is the last line on
    standard error.
    """
    configure_logging("namenode", level=log_as.level, form=log_as.form)
    _refuse_unbuilt(modes)
    if genclusterid:
        click.echo(f"Generating new cluster id:\n{new_cluster_id()}")
        return
    mode = _choose_mode(modes)
    if may_found and (mode is None or mode.name != "prepare"):
        raise click.UsageError("--found goes with --prepare")
    conf, place = _configure(conf_dir, overrides, serves=mode is None)
    if mode is None:
        name = f"namenode {place.address.namenode}"
        publish_facts("namenode", conf)
        sys.exit(run_daemon(name, lambda stop: _serve(conf, stop), busy=True))
    request = Request(
        conf=conf,
        place=place,
        consent=Consent(force=force, ask=None if non_interactive else confirmed),
        choose=_refuse_choice if non_interactive else chosen_letter,
        cluster_id=cluster_id,
        check_shared_edits=not skip_shared_edits_check,
        may_found=may_found,
        wait_seconds=wait_seconds,
    )
    sys.exit(_run(mode, request))


def _choose_mode(modes: Mapping[str, object]) -> Mode | None:
    given = [mode for mode in MODES if modes[f"mode_{mode.name}"]]
    if len(given) > 1:
        names = " and ".join(mode.spellings[0] for mode in given)
        raise click.UsageError(f"{names} cannot be given together")
    return given[0] if given else None


def _refuse_unbuilt(modes: Mapping[str, object]) -> None:
    for spelling, advice in NOT_BUILT.items():
        if modes[f"unbuilt_{spelling[1:].lower()}"] is not None:
            click.echo(f"namenode: {spelling} is not implemented in nnha. {advice}", err=True)
            sys.exit(UNEXPECTED)


def _run(mode: Mode, request: Request) -> int:
    try:
        with private_files():
            text = mode.run(request)
    except ExitWith as refusal:
        click.echo(f"namenode: {refusal.message}", err=True)
        return refusal.code
    except (StorageError, ImageError, EditsError, ConfigurationError, JournalError) as problem:
        click.echo(f"namenode: {problem}", err=True)
        return UNEXPECTED
    except OSError as problem:
        click.echo(
            f"namenode: {mode.spellings[0]} stopped halfway: {problem}. Repair that and run the "
            "same command again; a name directory without current/VERSION counts as not formatted.",
            err=True,
        )
        return UNEXPECTED
    prefix = "" if mode.name == "metadata_version" else "namenode: "
    click.echo(f"{prefix}{text}")
    return 0


def _configure(
    conf_dir: Path | None, overrides: tuple[str, ...], *, serves: bool
) -> tuple[Configuration, NameNodeIdentity]:
    try:
        conf = load_configuration(conf_dir, overrides)
        for warning in () if serves else conf.warnings:
            click.echo(f"namenode: warning: {warning}", err=True)
        act_as(certificates(conf, Role.NAMENODE), conf.get(SECURITY_MODE))
        log_in_as(conf, Daemon.NAMENODE)
        return conf, NameNodeIdentity.from_configuration(conf)
    except ExitWith as refusal:
        click.echo(f"namenode: {refusal.message}", err=True)
        sys.exit(refusal.code)
    except ConfigurationError as problem:
        click.echo(f"namenode: {problem}", err=True)
        sys.exit(end_code(problem) if serves else UNEXPECTED)


async def _serve(conf: Configuration, stop: asyncio.Event) -> None:
    try:
        check_start(conf, Daemon.NAMENODE)
        place = NameNodeIdentity.from_configuration(conf)
        access = check_exposure(conf, Daemon.NAMENODE, doors(conf, place))
        await run_namenode(conf, stop, access)
    except (StorageError, ImageError, ConfigurationError) as problem:
        raise ExitWith(end_code(problem), str(problem)) from problem
    except EditsError as problem:  # of a journal, too, which may have others later
        raise ExitWith(UNEXPECTED, str(problem)) from problem


def chosen_letter(trouble: str, choices: Mapping[str, str]) -> str:
    """Show a trouble and ask for one of the letters; the end of input means quit."""
    shown = "\n".join(f"  {letter}  {meaning}" for letter, meaning in choices.items())
    return ask_letter(f"{trouble}\n{shown}", choices, at_end="q")


def _refuse_choice(trouble: str, _choices: Mapping[str, str]) -> str:
    raise ExitWith(
        UNEXPECTED,
        f"{trouble}. Nothing was changed; run without --non-interactive to decide, or with --force "
        "to go on without what is lost.",
    )
