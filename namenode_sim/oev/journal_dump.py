"""``nnha journal dump``: edits of the quorum journal, shown as ``nnha oev`` shows a file's."""

import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, cast

import click

from ha.conf.configuration import load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.topology import namenodes, nameservice_of, shared_edits
from ha.console.exit_codes import REFUSED, UNEXPECTED, UNHEALTHY, UNREACHABLE, USAGE
from ha.console.options import configuration
from ha.console.own_certificate import call_under_certificate
from ha.daemon import event_loop
from journal.errors import JournalError, QuorumLost
from journal.frame import file_header
from journal.links.configuration import reader_settings
from journal.model import JournalId, TxId
from journal.reader.frame_stream import Chunk
from journal.reader.reader import JournalReader
from namenode_sim.edits.errors import EditsError
from namenode_sim.oev.command import PROCESSORS, convert, output_to
from namenode_sim.oev.sources import BinarySource


@click.command("dump", context_settings={"help_option_names": ["-h", "--help"]})
@configuration
@click.option("--from", "first", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--to", "last", type=click.IntRange(min=1), default=None, help="All, if not given.")
@click.option("--in-progress", is_flag=True, help="Also what is durable of the open segment.")
@click.option(
    "-p",
    "--processor",
    default="jsonl",
    show_default=True,
    type=click.Choice(PROCESSORS, case_sensitive=False),
    help="What to write.",
)
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    default="-",
    help="Where to write; overwritten if it exists; - is standard output.",
)
def dump(
    *,
    conf_dir: Path | None,
    overrides: tuple[str, ...],
    first: int,
    last: int | None,
    in_progress: bool,
    processor: str,
    target: Path,
) -> None:
    """Show edits of the journal, as a majority of its nodes holds them.

    Exit status: 0 done; 1 the output cannot be written; 2 wrong usage or configuration; 3 there is
    no such edit; 6 no majority of the nodes can be reached; 8 the edits are damaged, or some are
    missing.
    """
    if last is not None and last < first:
        raise click.UsageError(f"--to {last} comes before --from {first}")
    try:
        reader = _reader(conf_dir, overrides)
        with TemporaryFile() as temporary:
            file = cast(BinaryIO, temporary)
            count = event_loop.run(
                _gather(reader, file, TxId(first), last, in_progress=in_progress)
            )
            if count == 0:
                none = f"the journal has no edit from {first} on"
                open_one = "" if in_progress else " in a closed segment; see --in-progress"
                raise _failure(f"{none}{open_one}", REFUSED)
            file.seek(0)
            with output_to(target) as out:
                convert(processor, BinarySource(file, "the journal", recover=False), out)
    except BrokenPipeError:
        sys.exit(UNEXPECTED)
    except QuorumLost as lost:
        raise _failure(str(lost), UNREACHABLE) from lost
    except (JournalError, EditsError) as problem:
        raise _failure(str(problem), UNHEALTHY) from problem
    except ConfigurationError as problem:
        raise _failure(str(problem), USAGE) from problem
    except OSError as problem:
        raise _failure(str(problem), UNEXPECTED) from problem


async def _gather(
    make_reader: Callable[[], JournalReader],
    file: BinaryIO,
    first: TxId,
    last: int | None,
    *,
    in_progress: bool,
) -> int:
    """Write the edits to a file as one segment; how many there are."""
    reader = make_reader()
    count = 0
    try:
        read: AsyncGenerator[Chunk, None] = (
            reader.durable_edits(first)
            if in_progress
            else reader.edits(first, up_to=None if last is None else TxId(last))
        )
        async with aclosing(read) as chunks:
            async for chunk in chunks:
                if last is not None and chunk.first > last:
                    break
                wanted = chunk if last is None else chunk.cut(TxId(last))[0]
                if count == 0:
                    file.write(file_header(wanted.layout_version))
                file.write(wanted.records)
                count += wanted.last - wanted.first + 1
    finally:
        await reader.close()
    return count


def _reader(conf_dir: Path | None, overrides: tuple[str, ...]) -> Callable[[], JournalReader]:
    """Return a function that makes the reader, once there is an event loop."""
    conf = load_configuration(conf_dir, overrides)
    call_under_certificate(conf)
    nameservice = nameservice_of(conf)
    uri = shared_edits(conf, nameservice, namenodes(conf, nameservice)[0].namenode)
    nodes = [(node.host, node.port) for node in uri.nodes]
    return lambda: JournalReader(
        nodes,
        journal_id=JournalId(uri.journal_id),
        nameservice_id=nameservice,
        settings=reader_settings(conf),
    )


def _failure(message: str, code: int) -> click.exceptions.Exit:
    click.echo(f"Error: {message}", err=True)
    return click.exceptions.Exit(code)
