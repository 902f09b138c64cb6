"""``nnha fs ls``, ``stat``, ``du`` and ``find``: what is there."""

from collections.abc import Sequence

import click

from files.cli.completion import remote_paths
from files.cli.forms import Columns, Entry, formatted, in_order, usage_lines
from files.cli.globs import matcher
from files.cli.session import Session, about_files
from files.cli.spelling import name_of
from hadoop.proto import client_namenode_pb2 as calls

H_IS_FOR_SIZES = {"help_option_names": ["--help"]}
KINDS = {"f": "file", "d": "directory", "l": "symlink"}


@click.command(context_settings=H_IS_FOR_SIZES)
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=remote_paths)
@click.option("-d", "itself", is_flag=True, help="A directory itself, not what is in it.")
@click.option("-R", "deep", is_flag=True, help="All levels below.")
@click.option("-h", "human", is_flag=True, help="Sizes as 1.5 K, 3 G.")
@click.option("-t", "by_time", is_flag=True, help="The newest first.")
@click.option("-S", "by_size", is_flag=True, help="The largest first.")
@click.option("-r", "backwards", is_flag=True, help="The other way round.")
@about_files("ls", changes=False)
async def ls(
    session: Session,
    *,
    paths: Sequence[str],
    itself: bool,
    deep: bool,
    human: bool,
    by_time: bool,
    by_size: bool,
    backwards: bool,
) -> None:
    """List PATHs, or what is in them where they are directories; your home without one.

    Rights, replicas, owner, group, bytes, time of change, path. PATH may be a pattern with
    * ? [a-c] [^a] {b,c}: quote it, so that the shell leaves it alone.

    \b
    nnha fs ls /data
    nnha fs ls -R -h '/logs/2026-*'
    nnha fs ls -d -o json /data | jq '.results[].owner'
    """
    order = "time" if by_time else "size" if by_size else "name"
    columns = Columns()

    def show(entries: Sequence[Entry]) -> None:
        columns.widen(entries)
        for one in entries:
            text = columns.line(one, human=human) if session.for_people else None
            session.result(one.as_json(), text)

    for top in await session.named(paths or (".",)):
        with session.trying(top.shown):
            if itself or not top.is_directory:
                show([top])
            elif deep:
                async for one in session.tree.below(top):
                    if one is not top:
                        show([one])
            else:
                found = [one async for one in session.tree.entries(top)]
                if found:
                    session.say(f"Found {len(found)} items")
                show(in_order(found, order, backwards=backwards))


@click.command()
@click.argument(
    "words", nargs=-1, required=True, metavar="[FORMAT] PATH...", shell_complete=remote_paths
)
@about_files("stat", changes=False)
async def stat(session: Session, *, words: Sequence[str]) -> None:
    """Show facts of PATHs by a FORMAT, which is a word with a % in it (default: %y).

    %a %A rights as 755 and rwxr-xr-x, %b bytes, %F type, %g group, %n name, %o block size,
    %r replicas, %u owner, %x %X time of access and %y %Y of change, in UTC and in milliseconds.

    \b
    nnha fs stat '%b %u %n' /data/a
    nnha fs stat -o json /data/a
    """
    has_format = "%" in words[0] and len(words) > 1
    form = words[0] if has_format else "%y"
    for one in await session.named(words[has_format:]):
        session.result(one.as_json(), formatted(form, one))


@click.command(context_settings=H_IS_FOR_SIZES)
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=remote_paths)
@click.option("-s", "summed", is_flag=True, help="One sum for each PATH.")
@click.option("-h", "human", is_flag=True, help="Sizes as 1.5 K, 3 G.")
@about_files("du", changes=False)
async def du(session: Session, *, paths: Sequence[str], summed: bool, human: bool) -> None:
    """Show how many bytes are in and below PATHs: their own, and with all replicas.

    For a directory each entry has a line, and its sum is that of everything below.

    \b
    nnha fs du -h /data
    nnha fs du -s -h /user/alice
    """
    rows: list[tuple[int, int, str]] = []
    for top in await session.named(paths or (".",)):
        with session.trying(top.shown):
            inside = top.is_directory and not summed
            each = [one async for one in session.tree.entries(top)] if inside else [top]
            for one in each:
                answer = await session.tree.namenodes.call(
                    "getContentSummary",
                    calls.GetContentSummaryRequestProto(path=one.path),
                    calls.GetContentSummaryResponseProto,
                )
                found = answer.summary
                rows.append((found.length, found.spaceConsumed, one.shown))
                session.result(
                    {
                        "path": one.path,
                        "bytes": found.length,
                        "bytes_with_replicas": found.spaceConsumed,
                        "files": found.fileCount,
                        "directories": found.directoryCount,
                    }
                )
    for line in usage_lines(rows, human=human):
        session.say(line)


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=remote_paths)
@click.option("-name", "--name", "pattern", metavar="PATTERN", help="Whose last name matches.")
@click.option("-iname", "--iname", "any_case", metavar="PATTERN", help="In capitals or not.")
@click.option("-type", "--type", "kind", type=click.Choice([*KINDS]), help="Only files, ...")
@click.option("-maxdepth", "--maxdepth", "levels", type=click.IntRange(min=0), metavar="LEVELS")
@click.option("-print", "--print", is_flag=True, hidden=True, expose_value=False)
@about_files("find", changes=False)
async def find(
    session: Session,
    *,
    paths: Sequence[str],
    pattern: str | None,
    any_case: str | None,
    kind: str | None,
    levels: int | None,
) -> None:
    """Print everything at PATHs and below that fits all conditions.

    \b
    nnha fs find /data -name '*.parquet' -type f
    nnha fs find / -maxdepth 2 -type d
    """
    matches = []
    for text, flags in ((pattern, False), (any_case, True)):
        if text is not None:
            with session.trying(text):
                matches.append(matcher(text, any_case=flags))
    if session.failures:
        return
    for top in await session.named(paths or (".",)):
        with session.trying(top.shown):
            async for one in session.tree.below(top, levels):
                if kind is not None and one.kind != KINDS[kind]:
                    continue
                if all(each.fullmatch(name_of(one.path)) for each in matches):
                    session.result(one.as_json(), one.shown)
