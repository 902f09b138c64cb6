"""``nnha fs``, and in it ``ls``, ``stat``, ``du`` and ``find``: what is there."""

from collections.abc import Sequence

import click

from files.cli import forms
from files.cli.completion import remote_paths
from files.cli.session import Session, about_files
from files.cli.spelling import matcher
from hadoop.proto import client_namenode_pb2 as calls

H_IS_FOR_SIZES = {"help_option_names": ["--help"]}
TYPES = {"f": "file", "d": "directory", "l": "symlink"}
PATHS = click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=remote_paths)
HUMAN = click.option("-h", "human", is_flag=True, help="Sizes as 1.5 K, 3 G.")


class FilesGroup(click.Group):
    """Commands by name; ``-ls`` is ``ls``, as people write it to Hadoop's shell."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take Hadoop's spelling of a command for ours."""
        if args and args[0].startswith("-") and args[0][1:] in self.commands:
            args = [args[0][1:], *args[1:]]
        return super().parse_args(ctx, args)


@click.group(cls=FilesGroup)
def fs() -> None:
    """Work with files in HDFS, without a JVM; Hadoop's own shell is nnha dfs.

    Paths are absolute, relative to /user/NAME, or hdfs://NAMESERVICE/... Quote patterns (* ? [a-c]
    {a,b}), so that your shell leaves them to HDFS. Calls go through a failover, each is done once.

    Exits 0 if all was done, 3 if nothing was, 4 if a part was, 5 if that is not known, 6 if no
    NameNode was active in time, 7 if you may not, and 130 after Ctrl-C.
    """


@click.command(context_settings=H_IS_FOR_SIZES)
@PATHS
@click.option("-d", "itself", is_flag=True, help="A directory itself, not what is in it.")
@click.option("-R", "deep", is_flag=True, help="All levels below.")
@HUMAN
@click.option("-t", "order", flag_value="time", help="The newest first.")
@click.option("-S", "order", flag_value="size", help="The largest first.")
@click.option("-r", "backwards", is_flag=True, help="The other way round.")
@about_files("ls")
async def ls(
    session: Session, *, paths: Sequence[str], itself: bool, deep: bool, human: bool,
    order: str | None, backwards: bool,
) -> None:  # fmt: skip
    """List PATHs, or what is in them where they are directories; your home without one.

    \b
    nnha fs ls -R -h '/logs/2026-*'
    nnha fs ls -d -o json /data | jq '.results[].owner'
    """
    widths = [3, 0, 0, 10]

    def show(entries: Sequence[forms.Entry]) -> None:
        lines = forms.ls_lines(entries, widths, human=human)
        for one, line in zip(entries, lines, strict=True):
            session.found(one.as_json(), line)

    for top in await session.named(paths or (".",)):
        with session.trying(top.shown):
            if itself or not top.is_directory:
                show([top])
            elif deep:
                async for one in session.below(top):
                    if one is not top:
                        show([one])
            else:
                found = [one async for one in session.tree.entries(top)]
                if found and session.for_people:
                    click.echo(f"Found {len(found)} items")
                show(forms.in_order(found, order or "", backwards=backwards))


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="[FORMAT] PATH...",
                shell_complete=remote_paths)  # fmt: skip
@about_files("stat")
async def stat(session: Session, *, words: Sequence[str]) -> None:
    """Show facts of PATHs by a FORMAT, which is a word with a % in it (default: %y).

    %a %A rights, %b bytes, %F type, %g group, %n name, %o block size, %r replicas, %u owner, %x %X
    time of access and %y %Y of change, in UTC and in milliseconds: nnha fs stat '%b %u' /data/a
    """
    has_format = "%" in words[0] and len(words) > 1
    for one in await session.named(words[has_format:]):
        session.found(one.as_json(), forms.formatted(words[0] if has_format else "%y", one))


@click.command(context_settings=H_IS_FOR_SIZES)
@PATHS
@click.option("-s", "summed", is_flag=True, help="One sum for each PATH.")
@HUMAN
@about_files("du")
async def du(session: Session, *, paths: Sequence[str], summed: bool, human: bool) -> None:
    """Show how many bytes are in and below PATHs, their own and with all replicas.

    Each entry of a directory has a line: nnha fs du -s -h /user/alice
    """
    rows: list[tuple[int, int, str]] = []
    for top in await session.named(paths or (".",)):
        with session.trying(top.shown):
            inside = session.tree.entries(top) if not summed else session.below(top, 0)
            async for one in inside:
                with session.trying(one.shown):
                    call = session.tree.look(calls.GetContentSummaryResponseProto, path=one.path)
                    found = (await call).summary
                    rows.append((found.length, found.spaceConsumed, one.shown))
                    sizes = {"bytes": found.length, "bytes_with_replicas": found.spaceConsumed}
                    session.found({"path": one.path, **sizes})
    for line in forms.du_lines(rows, human=human):
        session.found({}, line) if session.for_people else None


@click.command()
@PATHS
@click.option("-name", "--name", "pattern", metavar="PATTERN", help="Whose last name matches.")
@click.option("-iname", "--iname", "any_case", metavar="PATTERN", help="In capitals or not.")
@click.option("-type", "--type", "kind", type=click.Choice([*TYPES]), help="Only these.")
@click.option("-maxdepth", "--maxdepth", "levels", type=click.IntRange(min=0), metavar="LEVELS")
@click.option("-print", "--print", is_flag=True, hidden=True, expose_value=False)
@about_files("find")
async def find(
    session: Session, *, paths: Sequence[str], pattern: str | None, any_case: str | None,
    kind: str | None, levels: int | None,
) -> None:  # fmt: skip
    """Print everything at PATHs and below that fits all conditions.

    \b
    nnha fs find /data -name '*.parquet' -type f
    """
    names = [matcher(pattern)] if pattern is not None else []
    names += [matcher(any_case, any_case=True)] if any_case is not None else []
    for top in await session.named(paths or (".",)):
        with session.trying(top.shown):
            async for one in session.below(top, levels):
                last = one.path.rpartition("/")[2]
                fits = TYPES.get(kind or "", one.type) == one.type
                if fits and all(name.fullmatch(last) for name in names):
                    session.found(one.as_json(), one.shown)
