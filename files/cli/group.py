"""``nnha fs``: the group of the commands for files; ``ha.cli.main`` has its table."""

import click


class FilesGroup(click.Group):
    """The commands by name; ``-ls`` is ``ls``, as people write it to Hadoop's shell."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take Hadoop's spelling of a command for ours."""
        if args and args[0].startswith("-") and args[0][1:] in self.commands:
            args = [args[0][1:], *args[1:]]
        return super().parse_args(ctx, args)

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the commands in the table's order, which is by use."""
        return list(self.commands)


@click.group(cls=FilesGroup)
def fs() -> None:
    """Work with files in HDFS, without a JVM.

    Paths are absolute (/data/a), relative to your home (/user/NAME), or hdfs://NAMESERVICE/...
    Quote patterns (* ? [a-c] {a,b}), so that your shell leaves them to HDFS. A call that a failover
    interrupts is made again, and carried out once. Hadoop's own shell is nnha dfs.

    Exits 0 if all was done, 3 if a path was refused, 4 if a part was done, 5 if it is not known,
    6 if no NameNode was active in time, 7 if you may not, and 130 after Ctrl-C.
    """
