"""``nnha config``: what is configured, where each value comes from, and whether it can be used."""

import difflib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click
from rich.table import Column, Table

from ha.cli.explain.configuration_problems import (
    blocked_daemons_text,
    problems_of,
    variables_left,
)
from ha.conf.client_proxy import CLIENT_PROXY, USUAL_PROXY, without_client_proxy
from ha.conf.configuration import Configuration, load_configuration, nodes_of
from ha.conf.errors import ConfigurationError
from ha.conf.hazards import HAZARDS
from ha.conf.ignored import ignored
from ha.conf.keys.cluster import NAMENODES, NAMESERVICES, ZKFC_PORT
from ha.conf.keys.key import Key, Scope
from ha.conf.keys.table import KEYS
from ha.conf.keys.unused import NOT_USED, reason_not_used
from ha.conf.listening import BIND_HOSTS, Door, door_of
from ha.conf.secrets import shown_value
from ha.conf.spelling import split_suffix
from ha.conf.topology import namenode_ids, nameservice_of
from ha.console.exit_codes import DONE, REFUSED, UNHEALTHY, USAGE
from ha.console.options import configuration as configuration_options
from ha.console.output import console
from ha.console.result import API_VERSION


@dataclass(frozen=True, slots=True)
class Shown:
    """One key as it is shown: the value in effect, and the setting that it comes from."""

    name: str
    value: str
    origin: str
    known: bool


@dataclass(frozen=True, slots=True)
class Given:
    """Options that were given before the subcommand's name."""

    conf_dir: Path | None
    overrides: tuple[str, ...]


@click.group()
@configuration_options
@click.pass_context
def config(ctx: click.Context, *, conf_dir: Path | None, overrides: tuple[str, ...]) -> None:
    """Show the configuration, explain a key, or check everything before a start."""
    ctx.obj = Given(conf_dir, overrides)


def _about_the_configuration(function: Callable[..., None]) -> Callable[..., None]:
    """Add --conf-dir and -D after a subcommand's name, as with every command.

    The function gets the ``Configuration``; one that cannot be read ends it with exit code 2.
    """

    @configuration_options
    @wraps(function)
    def wrapper(
        *,
        conf_dir: Path | None,
        overrides: tuple[str, ...],
        **own: Any,  # noqa: ANN401 - the subcommand's own options, of click's making
    ) -> None:
        given = click.get_current_context().find_object(Given) or Given(None, ())
        try:
            configuration = load_configuration(
                conf_dir or given.conf_dir, (*given.overrides, *overrides)
            )
        except ConfigurationError as error:
            click.echo(f"nnha config: {error}", err=True)
            sys.exit(USAGE)
        function(configuration, **own)

    return wrapper


@config.command()
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table")
@click.option("--all", "everything", is_flag=True, help="Also keys with their default values.")
@_about_the_configuration
def show(configuration: Configuration, *, output: str, everything: bool) -> None:
    """List every key that is set, with the file and line that set it."""
    rows = [_set_key(configuration, name) for name in sorted(configuration.settings)]
    if everything:
        rows += [
            Shown(key.name, shown_value(key.name, key.default), "default", known=True)
            for key in KEYS.values()
            if key.name not in configuration.settings
        ]
        rows.sort(key=lambda row: row.name)
    if output == "json":
        settings = [
            {"key": row.name, "value": row.value, "origin": row.origin, "known": row.known}
            for row in rows
        ]
        click.echo(json.dumps({"apiVersion": API_VERSION, "settings": settings}, indent=2))
    else:
        columns = (Column(name, overflow="fold") for name in ("KEY", "VALUE", "FROM"))
        table = Table(*columns, box=None, pad_edge=False)
        for row in rows:
            table.add_row(row.name, row.value, row.origin)
        console().print(table)
    _warn(configuration)
    sys.exit(DONE)


@config.command()
@click.argument("key")
@click.option("-ns", "--nameservice", default=None, help="The value for this nameservice.")
@click.option("-nn", "--namenode", default=None, help="The value for this NameNode.")
@_about_the_configuration
def explain(
    configuration: Configuration, *, key: str, nameservice: str | None, namenode: str | None
) -> None:
    """Say what a key is for, which value is in effect, and why that one."""
    found = KEYS.get(key)
    where = {"nameservice": nameservice, "namenode": namenode}
    if found is None:
        found, where = _before_suffix(configuration, key) or (None, where)
    if found is None and _explained_as_not_used(configuration, key):
        sys.exit(DONE)
    if found is None:
        near = [name for name in KEYS if key and (key in name or key.startswith(f"{name}."))][:5]
        near = near or difflib.get_close_matches(key, KEYS, cutoff=0.8)
        hint = f" Known: {', '.join(near)}." if near else " See: nnha config show --all."
        click.echo(f"nnha config: nnha reads no key {key!r}.{hint}", err=True)
        sys.exit(REFUSED)
    _introduce(found)
    try:
        value = configuration.get(found, **where)
    except ConfigurationError as error:
        click.echo(f"  in effect        none: {error}")
        sys.exit(UNHEALTHY)
    shown = "(not set)" if value is None else shown_value(key, str(value))
    because = configuration.where(found, **where)
    doors = list(_listeners(configuration, found, **where))
    if found in BIND_HOSTS and not configuration.is_set(found, **where) and doors:
        shown, because = _chosen(found, shown, because, doors)
    lines = shown.splitlines() or [""]
    click.echo(f"  in effect        {lines[0]}")
    for line in lines[1:]:
        click.echo(f"                   {line}")
    click.echo(f"  because of       {because}")
    for owner, door in doors:
        if (str(door.address), door.why) != (shown, because):
            click.echo(f"  listens on       {door.address}{owner}: {door.why}")
    sys.exit(DONE)


def _introduce(key: Key[Any]) -> None:
    """Print what a key is for, and how it may be set."""
    click.echo(f"{key.name}\n  {key.doc or 'a key of Hadoop'}")
    for hazard in HAZARDS:
        if hazard.key.name == key.name:
            click.echo(
                f"  not honoured     {hazard.meaning}; if asked for, {blocked_daemons_text(hazard)}"
            )
    click.echo(f"  may be set as    {_forms(key)}")
    click.echo(f"  default          {key.default or '(not set)'}")


def _chosen(
    key: Key[Any], shown: str, because: str, doors: Sequence[tuple[str, Door]]
) -> tuple[str, str]:
    """Return where the daemons of an address that is not set listen, and why."""
    if key is ZKFC_PORT:
        return shown, because
    if len(doors) == 1:
        (_, door) = doors[0]
        return str(door.address), door.why
    return ", ".join(f"{door.address}{owner}" for owner, door in doors), "each NameNode's own"


def _listeners(
    conf: Configuration, key: Key[Any], *, nameservice: str | None, namenode: str | None
) -> Iterator[tuple[str, Door]]:
    """Yield the listeners that an address or a bind-host decides about, each with its NameNode."""
    owners = [one for one, binds in BIND_HOSTS.items() if key is one or key in binds]
    with suppress(ConfigurationError):  # without a NameNode there is no listener to speak of
        for owner in owners:
            if owner.scope is Scope.GLOBAL:
                door = door_of(conf, owner)
                yield from [] if door is None else [("", door)]
                continue
            own = nameservice or nameservice_of(conf)
            for one in (namenode,) if namenode else namenode_ids(conf, own):
                door = door_of(conf, owner, nameservice=own, namenode=one)
                yield from [] if door is None else [(f" of {one}", door)]


def _explained_as_not_used(configuration: Configuration, name: str) -> bool:
    base = split_suffix(name, nodes_of(configuration))[0]
    reason = reason_not_used(name) or reason_not_used(base)
    if reason is None:
        return False
    click.echo(f"{name}\n  known to Hadoop, not used by nnha, because {reason}")
    held = configuration.settings.get(name)
    click.echo(f"  set by           {held.origin if held else '(not set)'}")
    return True


def _before_suffix(
    configuration: Configuration, name: str
) -> tuple[Key[object], dict[str, str | None]] | None:
    """Find the key to which a nameservice's or NameNode's id is appended, and these ids."""
    for nameservice in configuration.get(NAMESERVICES):
        for namenode in (None, *configuration.get(NAMENODES, nameservice=nameservice)):
            suffix = f".{nameservice}" if namenode is None else f".{nameservice}.{namenode}"
            found = KEYS.get(name.removesuffix(suffix)) if name.endswith(suffix) else None
            whole = Scope.NAMENODE if namenode else Scope.NAMESERVICE
            if found is not None and found.scope in (whole, Scope.NAMENODE):
                return found, {"nameservice": nameservice, "namenode": namenode}
    return None


@config.command()
@_about_the_configuration
def validate(configuration: Configuration) -> None:
    """Read every key, every address and the fencing methods as the daemons would.

    Exits 0 if all can be used, 8 if not; warnings, and settings that nnha does not use, are shown
    and do not change the exit code.
    """
    problems = problems_of(configuration)
    for problem in problems:
        click.echo(f"problem: {problem}", err=True)
    _warn(configuration)
    for left in variables_left(configuration):
        click.echo(f"warning: {left}", err=True)
    _doubt_clients(configuration)
    for one in ignored(configuration):
        click.echo(f"ignored: {one}", err=True)
    if problems:
        count = len(problems)
        click.echo(f"{count} problem{'s' if count > 1 else ''}; nothing was changed.", err=True)
        sys.exit(UNHEALTHY)
    click.echo(f"{len(configuration.settings)} settings can be used.")
    sys.exit(DONE)


def _doubt_clients(configuration: Configuration) -> None:
    """Warn of a missing key that only Hadoop's clients need, to find the active."""
    for name in without_client_proxy(configuration):
        click.echo(
            f"warning: {CLIENT_PROXY}.{name} is not set: Hadoop's clients take hdfs://{name} for a "
            f"host's name without it; set it to {USUAL_PROXY}",
            err=True,
        )


def _set_key(configuration: Configuration, name: str) -> Shown:
    setting = configuration.settings[name]
    try:
        value = configuration.raw(name) or ""
    except ConfigurationError as error:
        value = f"unusable: {error}"
    known = any(name == key or name.startswith(f"{key}.") for key in (*KEYS, *NOT_USED))
    return Shown(name, shown_value(name, value), str(setting.origin), known)


def _forms(key: Key[object]) -> str:
    ns, nn = f"{key.name}.<nameservice>", f"{key.name}.<nameservice>.<namenode>"
    match key.scope:
        case Scope.GLOBAL:
            return key.name
        case Scope.NAMESERVICE:
            return f"{ns}, or {key.name}"
        case Scope.NAMENODE:
            return f"{nn}, else {ns}, else {key.name}"


def _warn(configuration: Configuration) -> None:
    for warning in configuration.warnings:
        click.echo(f"warning: {warning}", err=True)
