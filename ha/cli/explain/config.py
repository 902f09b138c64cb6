"""``nnha config``: what is configured, where each value comes from, and whether it can be used."""

import difflib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
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
from ha.conf.ignored import find_ignored
from ha.conf.keys.cluster import NAMENODES, NAMESERVICE_ID, NAMESERVICES, ZKFC_PORT
from ha.conf.keys.key import Key, Scope
from ha.conf.keys.table import KEYS
from ha.conf.keys.unused import NOT_USED, reason_not_used
from ha.conf.listening import BIND_HOSTS, Door, door_of
from ha.conf.secrets import shown_value
from ha.conf.spelling import split_suffix
from ha.conf.topology import namenode as namenode_of
from ha.conf.topology import namenode_ids, nameservice_of
from ha.console.exit_codes import DONE, REFUSED, UNHEALTHY, USAGE
from ha.console.options import configuration as configuration_options
from ha.console.output import console
from ha.console.result import API_VERSION
from ha.record import dataclass


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


OUTPUT = click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table")
NAMESERVICE = click.option("-ns", "--nameservice", help="Which nameservice, if several.")


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
@OUTPUT
@click.option("--all", "everything", is_flag=True, help="Also keys with their default values.")
@NAMESERVICE
@_about_the_configuration
def show(
    configuration: Configuration, *, output: str, everything: bool, nameservice: str | None
) -> None:
    """List every key that is set, with the file and line that set it.

    With --nameservice those that are another nameservice's own are left out.
    """
    _about(configuration, nameservice)
    nodes = nodes_of(configuration)
    rows = [
        _set_key(configuration, name)
        for name in sorted(configuration.settings)
        if nameservice is None or split_suffix(name, nodes)[1][:1] in ((), (nameservice,))
    ]
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


Rows = list[tuple[str, str]]


@config.command()
@click.argument("key")
@click.option("-ns", "--nameservice", default=None, help="The value for this nameservice.")
@click.option("-nn", "--namenode", default=None, help="The value for this NameNode.")
@OUTPUT
@_about_the_configuration
def explain(
    configuration: Configuration,
    *,
    key: str,
    nameservice: str | None,
    namenode: str | None,
    output: str,
) -> None:
    """Say what a key is for, which value is in effect, and why that one."""
    about = _about(configuration, nameservice)
    if namenode is not None:
        _or_refuse(lambda: namenode_of(about, nameservice or nameservice_of(about), namenode))
    found = KEYS.get(key)
    where = {"nameservice": nameservice, "namenode": namenode}
    if found is None:
        found, where = _before_suffix(configuration, key) or (None, where)
    if found is None and (reason := _reason_unused(configuration, key)):
        held = configuration.settings.get(key)
        rows = [("set by", str(held.origin) if held else "(not set)")]
        _print(output, key, f"known to Hadoop, not used by nnha, because {reason}", rows)
        sys.exit(DONE)
    if found is None:
        near = [name for name in KEYS if key and (key in name or key.startswith(f"{name}."))][:5]
        near = near or difflib.get_close_matches(key, KEYS, cutoff=0.8)
        hint = f" Known: {', '.join(near)}." if near else " See: nnha config show --all."
        click.echo(f"nnha config: nnha reads no key {key!r}.{hint}", err=True)
        sys.exit(REFUSED)
    rows, code = _introduction(found), DONE
    try:
        rows += _effect(configuration, key, found, where)
    except ConfigurationError as error:
        rows, code = [*rows, ("in effect", f"none: {error}")], UNHEALTHY
    _print(output, found.name, found.doc or "a key of Hadoop", rows)
    sys.exit(code)


def _effect(
    configuration: Configuration, name: str, key: Key[Any], where: Mapping[str, str | None]
) -> Rows:
    """Return the value in effect, why that one, and the listeners that it decides about."""
    value = configuration.get(key, **where)
    shown = "(not set)" if value is None else shown_value(name, str(value))
    because = configuration.where(key, **where)
    doors = list(_listeners(configuration, key, **where))
    if key in BIND_HOSTS and not configuration.is_set(key, **where) and doors:
        shown, because = _describe_listeners(key, shown, because, doors)
    listeners = [
        ("listens on", f"{door.address}{owner}: {door.why}")
        for owner, door in doors
        if (str(door.address), door.why) != (shown, because)
    ]
    return [("in effect", shown), ("because of", because), *listeners]


def _print(output: str, name: str, purpose: str, rows: Rows) -> None:
    if output == "json":
        facts: dict[str, object] = {label.replace(" ", "_"): text for label, text in rows}
        facts["listens_on"] = [text for label, text in rows if label == "listens on"]
        _print_json("config explain", {"key": name, "purpose": purpose, **facts})
        return
    click.echo(f"{name}\n  {purpose}")
    for label, text in rows:
        first, *more = text.splitlines() or [""]
        click.echo(f"  {label:<16} {first}")
        for line in more:
            click.echo(f"{'':<19}{line}")


def _print_json(command: str, facts: Mapping[str, object]) -> None:
    click.echo(json.dumps({"apiVersion": API_VERSION, "command": command, **facts}, indent=2))


def _about(configuration: Configuration, nameservice: str | None) -> Configuration:
    """Return the configuration as of this nameservice; end the command if there is none."""
    if nameservice is None:
        return configuration
    about = configuration.with_overrides([f"{NAMESERVICE_ID.name}={nameservice}"])
    _or_refuse(lambda: nameservice_of(about))
    return about


def _or_refuse(ask: Callable[[], object]) -> None:
    try:
        ask()
    except ConfigurationError as error:
        click.echo(f"nnha config: {error}", err=True)
        sys.exit(REFUSED)


def _introduction(key: Key[Any]) -> Rows:
    """Return how a key may be set, and what of it is not honoured."""
    refused = [
        ("not honoured", f"{one.meaning}; if asked for, {blocked_daemons_text(one)}")
        for one in HAZARDS
        if one.key.name == key.name
    ]
    return [*refused, ("may be set as", _forms(key)), ("default", str(key.default or "(not set)"))]


def _describe_listeners(
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


def _reason_unused(configuration: Configuration, name: str) -> str | None:
    base = split_suffix(name, nodes_of(configuration))[0]
    return reason_not_used(name) or reason_not_used(base)


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
@OUTPUT
@click.option("--strict", is_flag=True, help="Warnings count as problems: for CI.")
@NAMESERVICE
@_about_the_configuration
def validate(
    configuration: Configuration, *, output: str, strict: bool, nameservice: str | None
) -> None:
    """Read every key, every address and the fencing methods as the daemons would.

    Exits 0 if all can be used, 8 if not; warnings (a misspelt key) are shown, and change the exit
    code with --strict only; settings that nnha does not use are shown and never do.
    """
    about = _about(configuration, nameservice)
    problems = problems_of(about)
    warnings = [*about.warnings, *variables_left(about), *_doubts_of_clients(about)]
    unused = list(map(str, find_ignored(about)))
    count = len(problems) + (len(warnings) if strict else 0)
    if output == "json":
        facts = {"problems": problems, "warnings": warnings, "ignored": unused}
        _print_json("config validate", {"settings": len(about.settings), **facts})
        sys.exit(UNHEALTHY if count else DONE)
    for kind, texts in (("problem", problems), ("warning", warnings), ("ignored", unused)):
        for text in texts:
            click.echo(f"{kind}: {text}", err=True)
    if count:
        click.echo(f"{count} problem{'s' if count > 1 else ''}; nothing was changed.", err=True)
        sys.exit(UNHEALTHY)
    click.echo(f"{len(configuration.settings)} settings can be used.")
    sys.exit(DONE)


def _doubts_of_clients(configuration: Configuration) -> Iterator[str]:
    """Yield a warning for a missing key that only Hadoop's clients need, to find the active."""
    for name in without_client_proxy(configuration):
        yield (
            f"{CLIENT_PROXY}.{name} is not set: Hadoop's clients take hdfs://{name} for a host's "
            f"name without it; set it to {USUAL_PROXY}"
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
