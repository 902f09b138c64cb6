"""What the subcommands of ``nnha journal`` share: options, places, refusals and exit codes."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from rich.console import Console

from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.topology import JournalUri, namenodes, nameservice_of, shared_edits
from ha.console.exit_codes import REFUSED, UNEXPECTED
from ha.console.options import configuration, timeout_option
from ha.console.own_certificate import call_under_certificate
from ha.console.result import API_VERSION
from journal.errors import JournalError
from journal.links.probed_link import ProbedLink
from journal.links.quorum_call import ask_once, failed
from journal.links.remote_node import JournalAddress, RemoteNode
from journal.model import JournalId, NodeName
from journal.quorum import majority

T = TypeVar("T")

ASK_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Place:
    """Which journal is meant, and where its nodes are."""

    conf: Configuration
    uri: JournalUri
    address: JournalAddress
    timeout_seconds: float
    """How long a node may take to answer."""

    @property
    def nodes(self) -> list[tuple[str, int]]:
        """Host and port of each node, as configured."""
        return [(node.host, node.port) for node in self.uri.nodes]

    @property
    def needed(self) -> int:
        """How many nodes are a majority."""
        return majority(len(self.uri.nodes))


def about_a_journal(command: Callable[..., None]) -> Callable[..., None]:
    """Add --conf-dir, -D, --timeout and -o: the command gets ``place`` and ``output``."""

    @configuration
    @timeout_option(ASK_SECONDS)
    @click.option(
        "-o",
        "--output",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        help="How to print.",
    )
    @click.option("--json", "output", flag_value="json", help="The same as -o json.")
    @wraps(command)
    def wrapper(
        *,
        conf_dir: Path | None,
        overrides: Sequence[str],
        timeout_seconds: float,
        **own: Any,  # noqa: ANN401 - the command's own options, of click's making
    ) -> None:
        command(place=_place_of(conf_dir, overrides, timeout_seconds), **own)

    return wrapper


def _place_of(conf_dir: Path | None, overrides: Sequence[str], timeout_seconds: float) -> Place:
    try:
        conf = load_configuration(conf_dir, overrides)
        call_under_certificate(conf)
        nameservice = nameservice_of(conf)
        # Every NameNode of a nameservice has the same shared edits, so any one will do.
        uri = shared_edits(conf, nameservice, namenodes(conf, nameservice)[0].namenode)
    except ConfigurationError as error:
        raise failure(str(error), UNEXPECTED) from error
    return Place(
        conf,
        uri,
        JournalAddress(JournalId(uri.journal_id), nameservice, link=ProbedLink),
        timeout_seconds,
    )


def failure(message: str, code: int) -> click.exceptions.Exit:
    """Say why on standard error; raise what this returns."""
    click.echo(f"Error: {message}", err=True)
    return click.exceptions.Exit(code)


def refused(
    what: str, reasons: Iterable[tuple[NodeName, str]], then: str, code: int = REFUSED
) -> click.exceptions.Exit:
    """A refusal as everywhere: what was tried, each node's reason, what to do next."""
    click.echo(f"REFUSED (nothing was changed): {what}", err=True)
    for node, reason in reasons:
        click.echo(f"  {node}  {reason}", err=True)
    click.echo(f"  next: {then}", err=True)
    return click.exceptions.Exit(code)


async def ask_each(
    place: Place,
    question: Callable[[RemoteNode], Awaitable[T]],
    only: Iterable[NodeName] | None = None,
) -> dict[NodeName, T | JournalError]:
    """Ask all nodes, or some of them, at once; every answer or the reason why there is none."""
    wanted = None if only is None else set(only)
    asked = [
        (host, port)
        for host, port in place.nodes
        if wanted is None or NodeName(f"{host}:{port}") in wanted
    ]
    return await ask_once(asked, place.address, question)


def bad(answers: Mapping[NodeName, T | JournalError]) -> list[tuple[NodeName, str]]:
    """Those that did not answer, by name, and why."""
    return [(node, str(why)) for node, why in sorted(failed(answers).items())]


def print_json(place: Place, body: Mapping[str, object]) -> None:
    """The machine's form; keys never disappear."""
    click.echo(
        json.dumps({"apiVersion": API_VERSION, "journal": place.uri.journal_id, **body}, indent=2)
    )


def tell(console: Console, reasons: Iterable[tuple[NodeName, str]]) -> None:
    """Below a table, where a long reason has room."""
    for node, reason in reasons:
        console.print(f"{node}: {reason}", highlight=False, soft_wrap=True, markup=False)
