"""``nnha journal repair-promise``: undo an absurd promise of a stopped JournalNode."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click
import structlog

from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys import journal as keys
from ha.conf.topology import namenodes, nameservice_of, shared_edits
from ha.console.command_audit import CommandAudit
from ha.console.exit_codes import REFUSED, UNREACHABLE, USAGE
from ha.console.options import configuration
from ha.daemon import event_loop
from ha.daemon.logs import configure_logging
from ha.record import dataclass
from journal.core.state import JournalState
from journal.errors import JournalError, StorageFailed
from journal.links.remote_node import JournalAddress, RemoteNode
from journal.model import MAX_EPOCH_LEAP, Epoch, JournalId
from journal.proto import journal_pb2 as pb
from journal.storage.disk import Disk
from journal.storage.files import RealFiles, write_durably
from journal.storage.layout import CURRENT, PROMISE
from journal.storage.lock import StorageLock
from journal.storage.small_files import epoch_text

log = structlog.get_logger()

ASK_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class LocalJournal:
    """The journal's folder on this machine, and the addresses of all of its nodes."""

    root: Path
    journal_id: JournalId
    nameservice: str
    nodes: tuple[tuple[str, int], ...]


@click.command("repair-promise")
@click.option("--epoch", type=click.IntRange(min=0), required=True, help="What to promise instead.")
@click.option("--yes", is_flag=True, help="Do it; without this the command only says what it saw.")
@configuration
def repair_promise(
    conf_dir: Path | None, overrides: tuple[str, ...], epoch: int, *, yes: bool
) -> None:
    """Give a stopped JournalNode of this machine another promise, where its own is absurd.

    A promise far above those of the other nodes was made by no failover; with it the node refuses
    every writer.  One far below theirs is raised.  All other nodes must run and answer.  Run it on
    the stopped node's machine, with the configuration of that node.

    Exit status: 0 done; 2 wrong usage or configuration; 3 refused, nothing was changed; 6 a node
    gives no answer, nothing was changed.
    """
    configure_logging("journal", level="info")
    try:
        conf = load_configuration(conf_dir, overrides)
        place = place_of(conf)
        lock = StorageLock(place.root)
    except (ConfigurationError, StorageFailed) as problem:
        click.echo(f"Error: {problem}", err=True)
        sys.exit(USAGE if isinstance(problem, ConfigurationError) else REFUSED)
    audit = CommandAudit.configured(conf) if yes else CommandAudit(None)
    try:
        with audit.telling("journal repair-promise", f"{place.root} epoch {epoch}"):
            sys.exit(_repair(place, Epoch(epoch), yes=yes))
    finally:
        lock.release()


def place_of(conf: Configuration) -> LocalJournal:
    """Return the journal's folder and nodes from the configuration.

    Raises:
        ConfigurationError: the configuration does not name them.
        StorageFailed: there is no such journal on this machine.
    """
    nameservice = nameservice_of(conf)
    uri = shared_edits(conf, nameservice, namenodes(conf, nameservice)[0].namenode)
    root = Path(conf.get(keys.EDITS_DIR, nameservice=nameservice)) / uri.journal_id
    if not (root / CURRENT).is_dir():
        raise StorageFailed(f"{root} holds no journal: run this where the stopped node keeps it")
    nodes = tuple((node.host, node.port) for node in uri.nodes)
    return LocalJournal(root, JournalId(uri.journal_id), nameservice, nodes)


def _repair(place: LocalJournal, epoch: Epoch, *, yes: bool) -> int:
    disk = Disk(place.root)
    try:
        state = disk.load()
    except JournalError as failure:
        click.echo(f"Error: {failure}", err=True)
        return REFUSED
    finally:
        disk.close()
    answers = event_loop.run(_ask(place))
    told = {name: one for name, one in answers.items() if isinstance(one, pb.JournalStatus)}
    click.echo(f"{place.root}: promised {state.promised}, writer {state.writer}")
    for name, one in sorted(answers.items()):
        click.echo(
            f"  {name}  promised {one.last_promised_epoch}, writer {one.last_writer_epoch}"
            if isinstance(one, pb.JournalStatus)
            else f"  {name}  {one}"
        )
    if len(told) < len(place.nodes) - 1:
        click.echo("REFUSED (nothing was changed): every other node must run and answer", err=True)
        return UNREACHABLE
    why = why_not(state, told, epoch)
    if why is None and not yes:
        why = "say --yes to replace the promise by the epoch that you named"
    if why is not None:
        click.echo(f"REFUSED (nothing was changed): {why}", err=True)
        return REFUSED
    write_durably(RealFiles(), place.root / CURRENT / PROMISE, epoch_text(epoch))
    log.warning(
        "journal.promise_repaired",
        journal=place.journal_id,
        folder=str(place.root),
        before=state.promised,
        after=epoch,
        others={name: one.last_promised_epoch for name, one in sorted(told.items())},
    )
    click.echo(f"promises {epoch} from now on; start the node")
    return 0


async def _ask(place: LocalJournal) -> Mapping[str, pb.JournalStatus | JournalError]:
    async def one(host: str, port: int) -> tuple[str, pb.JournalStatus | JournalError]:
        remote = RemoteNode(host, port, JournalAddress(place.journal_id, place.nameservice))
        try:
            return remote.name, await remote.status(ASK_SECONDS)
        except JournalError as failure:
            return remote.name, failure
        finally:
            await remote.close()

    return dict(await asyncio.gather(*(one(host, port) for host, port in place.nodes)))


def why_not(
    state: JournalState, others: Mapping[str, pb.JournalStatus], epoch: Epoch
) -> str | None:
    """Return why the promise must not be replaced by ``epoch``; None if it may be.

    A promise that counted in a writer's majority must stay.  That writer has started a segment on
    some node, or a majority has promised an epoch close to it.
    """
    wrote = max([state.writer, *(decision.epoch for decision in state.decisions.values())])
    wrote = Epoch(max(wrote, *(one.last_writer_epoch for one in others.values())))
    if epoch < wrote:
        return f"epoch {wrote} has written or decided; name that or a later one"
    if state.promised < epoch <= max(one.last_promised_epoch for one in others.values()):
        return None  # this node is behind the others, and to raise a promise is always safe
    if state.promised - epoch <= MAX_EPOCH_LEAP // 2:
        return (
            f"the promise {state.promised} is no absurd one beside {epoch}: the next writer "
            "claims a higher one by itself"
        )
    sane = [
        one.last_promised_epoch
        for one in others.values()
        if one.last_promised_epoch - epoch <= MAX_EPOCH_LEAP // 2
    ]
    if any(promised > epoch for promised in sane):
        return f"another node has promised {max(sane)}; name that or a later one"
    if not sane:
        return "every other node has promised as much: a failover may have come so far"
    return None
