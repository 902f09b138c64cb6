"""What the subcommands of ``nnha journal`` share: options, places, refusals and exit codes."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from rich.console import Console

from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys.cluster import NAMESERVICE_ID
from ha.conf.topology import HostPort, JournalUri, namenodes, nameservice_of, shared_edits
from ha.console.exit_codes import REFUSED, UNREACHABLE, USAGE
from ha.console.options import configuration, timeout_option
from ha.console.own_certificate import call_under_certificate
from ha.console.result import API_VERSION, Code, CommandOutcome, Ending, Reason
from ha.record import dataclass
from journal.errors import JournalError
from journal.links.probed_link import ProbedLink
from journal.links.quorum_call import ask_once, failed
from journal.links.remote_node import JournalAddress, RemoteNode
from journal.model import JournalId, NodeName
from journal.quorum import majority

T = TypeVar("T")

ASK_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class JournalTarget:
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
    @click.option("-ns", "--nameservice", default=None, help="Which nameservice, if several.")
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
        nameservice: str | None,
        **own: Any,  # noqa: ANN401 - the command's own options, of click's making
    ) -> None:
        try:
            named = [] if nameservice is None else [f"{NAMESERVICE_ID.name}={nameservice}"]
            command(place=_place_of(conf_dir, [*overrides, *named], timeout_seconds), **own)
        except NotDone as end:
            end.tell(f"journal {click.get_current_context().info_name}", own["output"])
            raise

    return wrapper


def _place_of(
    conf_dir: Path | None, overrides: Sequence[str], timeout_seconds: float
) -> JournalTarget:
    try:
        conf = load_configuration(conf_dir, overrides)
        call_under_certificate(conf)
        nameservice = nameservice_of(conf)
        # Every NameNode of a nameservice has the same shared edits, so any one will do.
        uri = shared_edits(conf, nameservice, namenodes(conf, nameservice)[0].namenode)
    except ConfigurationError as error:
        raise NotDone(str(error), USAGE) from error
    return JournalTarget(
        conf,
        uri,
        JournalAddress(JournalId(uri.journal_id), nameservice, link=ProbedLink),
        timeout_seconds,
    )


class NotDone(click.exceptions.Exit):
    """A command ends without its result, and nothing was changed; ``output`` sets the format.

    Args:
        message: why.
        code: the exit code.
        reasons: those of single nodes.
        then: what to do next; given with every refusal.
    """

    def __init__(
        self, message: str, code: int, reasons: Iterable[tuple[NodeName, str]] = (), then: str = ""
    ) -> None:
        super().__init__(code)
        self._message = message
        self._reasons = tuple(reasons)
        self._then = then

    def tell(self, command: str, output: str) -> None:
        """Print one JSON document on standard output, or lines of text on standard error."""
        if output == "json":
            document = {**self._ending(command).as_json(), "exit_code": self.exit_code}
            click.echo(json.dumps(document, indent=2))
            return
        head = "REFUSED (nothing was changed)" if self._then else "Error"
        click.echo(f"{head}: {self._message}", err=True)
        for node, reason in self._reasons:
            click.echo(f"  {node}  {reason}", err=True)
        if self._then:
            click.echo(f"  next: {self._then}", err=True)

    def _ending(self, command: str) -> Ending:
        silent = self.exit_code == UNREACHABLE
        codes = {UNREACHABLE: Code.NO_ANSWER, USAGE: Code.BAD_CONFIGURATION}
        return Ending(
            command,
            CommandOutcome.UNREACHABLE if silent else CommandOutcome.REFUSED,
            codes.get(self.exit_code, Code.JOURNAL_REFUSED),
            self._message,
            hint=self._then,
            reasons=tuple(Reason(node, reason) for node, reason in self._reasons),
        )


def refused(
    what: str, reasons: Iterable[tuple[NodeName, str]], then: str, code: int = REFUSED
) -> NotDone:
    """Build a refusal: what was tried, each node's reason, and what to do next."""
    return NotDone(what, code, reasons, then)


async def ask_each(
    place: JournalTarget,
    question: Callable[[RemoteNode], Awaitable[T]],
    only: Iterable[NodeName] | None = None,
) -> dict[NodeName, T | JournalError]:
    """Ask all nodes, or some of them, at once; every answer or the reason why there is none."""
    wanted = None if only is None else set(only)
    asked = [
        (host, port)
        for host, port in place.nodes
        if wanted is None or NodeName(str(HostPort(host, port))) in wanted
    ]
    return await ask_once(asked, place.address, question)


def bad(answers: Mapping[NodeName, T | JournalError]) -> list[tuple[NodeName, str]]:
    """Return the nodes that did not answer, sorted by name, each with the reason."""
    return [(node, str(why)) for node, why in sorted(failed(answers).items())]


def print_json(place: JournalTarget, body: Mapping[str, object]) -> None:
    """Print the JSON document of a command; its keys are always present."""
    click.echo(
        json.dumps({"apiVersion": API_VERSION, "journal": place.uri.journal_id, **body}, indent=2)
    )


def tell(console: Console, reasons: Iterable[tuple[NodeName, str]]) -> None:
    """Below a table, where a long reason has room."""
    for node, reason in reasons:
        console.print(f"{node}: {reason}", highlight=False, soft_wrap=True, markup=False)
