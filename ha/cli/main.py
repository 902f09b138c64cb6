"""``nnha``: finds a command in a static table and loads only that one."""

import gc
import importlib
import io
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from ha.cli.missing import needed_extra
from ha.console.full_output import report_unwritten_output
from ha.console.interrupt import interruptible
from ha.lean_imports import import_lean, import_protobuf
from ha.record import dataclass, field

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command lives (``module:attribute``), and its line in the list of commands.

    ``parts`` are subcommands that live in another package than their group does.  ``logs``:
    whether it needs structlog.  ``counts``: whether it needs prometheus_client.
    """

    place: str
    summary: str
    logs: bool = True
    counts: bool = False
    parts: Mapping[str, "Entry"] = field(default_factory=dict)


COMMANDS: Mapping[str, Entry] = {
    "status": Entry("ha.cli.status.command:status", "Show the whole cluster on one screen."),
    "datanodes": Entry(
        "ha.cli.status.datanodes:datanodes",
        "List the DataNodes: state, last contact, volumes.",
        parts={
            "decommission": Entry("ha.cli.operate.leave:decommission", "Have a DataNode go."),
            "maintenance": Entry("ha.cli.operate.leave:maintenance", "Let one be away a while."),
            "recommission": Entry("ha.cli.operate.leave:recommission", "Have one serve again."),
        },
    ),
    "fsck": Entry("ha.cli.status.fsck:fsck", "List files with missing or too few replicas."),
    "switchover": Entry(
        "ha.cli.operate.switchover:switchover", "Have the active NameNode hand over to another."
    ),
    "failover": Entry("ha.cli.operate.switchover:failover", "Make a NameNode active when none is."),
    "pause": Entry("ha.cli.operate.pause:pause", "Stop automatic failover for a time."),
    "resume": Entry("ha.cli.operate.pause:resume", "End a pause."),
    "drain": Entry(
        "ha.cli.operate.drain:drain", "Take one NameNode out of the election for a time."
    ),
    "safemode": Entry("ha.cli.operate.safemode:safemode", "Show, enter or leave safe mode."),
    "history": Entry(
        "ha.cli.explain.history:history", "List the failovers so far, with their causes."
    ),
    "explain": Entry(
        "ha.cli.explain.command:explain", "Say why the active is active, and who would be next."
    ),
    "doctor": Entry(
        "ha.cli.explain.doctor.command:doctor", "Check configuration and daemons for problems."
    ),
    "web": Entry("ha.web.command:web", "Show the whole cluster as a page, live.", counts=True),
    "probe": Entry(
        "ha.cli.probe.command:probe",
        "Ask a daemon whether it is live or ready.",
        logs=False,
    ),
    "haadmin": Entry(
        "ha.cli.hadoop.haadmin:haadmin", "Hadoop's haadmin: states, health, failover."
    ),
    "namenode": Entry(
        "namenode_sim.process.command:namenode", "Run a NameNode, or format it.", counts=True
    ),
    "datanode": Entry("datanode.process.command:datanode", "Run a DataNode.", counts=True),
    "journalnode": Entry(
        "journal.node.process.command:journalnode", "Run a JournalNode.", counts=True
    ),
    "zkfc": Entry(
        "ha.zkfc.process.command:zkfc",
        "Run a failover controller, or format ZooKeeper.",
        counts=True,
    ),
    "journal": Entry(
        "journal.cli.group:journal",
        "Inspect and format the quorum journal.",
        parts={
            "dump": Entry(
                "namenode_sim.oev.journal_dump:dump", "Show edits of the journal, through oev."
            ),
            "repair-promise": Entry(
                "journal.node.process.promise_repair:repair_promise",
                "Undo an absurd promise of a stopped node.",
            ),
        },
    ),
    "config": Entry("ha.cli.explain.config:config", "Show, explain and check the configuration."),
    "fence": Entry("ha.cli.operate.fence:fence", "Show and test the fencing methods."),
    "security": Entry(
        "ha.cli.security:security", "Make, renew and revoke certificates.", logs=False
    ),
    "oev": Entry(
        "namenode_sim.oev.command:oev",
        "Hadoop's offline edits viewer, and JSON lines.",
        logs=False,
    ),
    "checkpoint": Entry(
        "namenode_sim.checkpoint.command:checkpoint",
        "Make a newer image from files.",
        logs=False,
        parts={
            "merge": Entry(
                "spark.merge.command:merge_command",
                "Merge an image and edits, on Spark or in one process.",
            ),
            "run": Entry(
                "spark.service.command:run_command",
                "Make checkpoints of a running cluster until stopped.",
            ),
        },
    ),
    "namespace": Entry(
        "spark.tables.command:namespace",
        "Export a namespace as tables, and report on it.",
        parts={
            "report": Entry(
                "spark.reports.command:report", "Report on an export: usage, small files, growth."
            ),
        },
    ),
    "backup": Entry("spark.backup.command:backup", "Back up a cluster's metadata, and restore it."),
    "oiv": Entry("namenode_sim.oiv.command:oiv", "View an fsimage offline.", logs=False),
    "fs": Entry(
        "files.cli.listing:fs",
        "Work with files, without a JVM.",
        logs=False,
        parts={
            "ls": Entry("files.cli.listing:ls", "List files and directories.", logs=False),
            "cat": Entry("files.cli.copies:cat", "Print files."),
            "tail": Entry("files.cli.copies:tail", "Print the end of a file, and follow it."),
            "get": Entry("files.cli.copies:get", "Copy from HDFS to this machine."),
            "put": Entry("files.cli.copies:put", "Copy from this machine into HDFS."),
            "mkdir": Entry("files.cli.changes:mkdir", "Make directories.", logs=False),
            "rm": Entry("files.cli.changes:rm", "Move to the trash, or delete.", logs=False),
            "mv": Entry("files.cli.changes:mv", "Move and rename.", logs=False),
            "stat": Entry("files.cli.listing:stat", "Show facts by a format.", logs=False),
            "du": Entry("files.cli.listing:du", "Show how many bytes are where.", logs=False),
            "find": Entry("files.cli.listing:find", "Find by name, type, depth.", logs=False),
            "chmod": Entry("files.cli.changes:chmod", "Change permissions.", logs=False),
            "checksum": Entry("files.cli.copies:checksum", "Print Hadoop's checksum of files."),
            "chown": Entry("files.cli.changes:chown", "Change owner and group.", logs=False),
        },
    ),
    "dfs": Entry("deploy.local.demo.dfs:dfs", "Hadoop's own file system shell, on a JVM."),
    "completion": Entry(
        "ha.console.completion:completion", "Print a shell's completion script.", logs=False
    ),
    "cluster": Entry(
        "deploy.local.demo.command:cluster", "Run a local cluster in the foreground.", logs=False
    ),
    "demo": Entry("deploy.local.demo.demo:demo", "Watch a local cluster fail over."),
}
"""``ha`` knows the other packages by these names only: it imports none of them."""


class Deferred(click.Command):
    """A subcommand that is imported when it is called; until then it has a name and a summary."""

    def __init__(self, name: str, entry: Entry) -> None:
        super().__init__(name, short_help=entry.summary)
        self._entry = entry

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401 - click's own shape
    ) -> click.Context:
        """Become the command that is meant."""
        of_group = "" if parent is None else f"{parent.info_name} "
        command = _load(f"{of_group}{self.name}", self._entry)
        return command.make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's own shape
        """Run the command that is meant, where it is a script of its own."""
        return ctx.command.invoke(ctx)


def _load(name: str, entry: Entry) -> click.Command:
    if entry.logs:
        import_lean("structlog")
    if entry.counts:
        import_lean("prometheus_client")
    import_protobuf()
    module_name, _, attribute = entry.place.partition(":")
    # What is loaded stays: a search for garbage in it takes a tenth of the time, and finds little.
    gc.disable()
    try:
        command = getattr(importlib.import_module(module_name), attribute)
    except ModuleNotFoundError as error:
        if told := needed_extra(name, error.name):
            raise click.UsageError(told) from error
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise click.ClickException(
            f"'{name}' is not part of this installation (there is no {error.name})."
        ) from error
    finally:
        gc.enable()
    if not isinstance(command, click.Command):
        raise TypeError(f"{entry.place} is no command")
    return command


class LazyGroup(click.Group):
    """A group that imports a command when it is called, so that no command slows another."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # noqa: ANN401 - click's own shape
    ) -> click.Context:
        """Read the group's own options, of which some print and end it."""
        with interruptible(), report_unwritten_output():
            return super().make_context(info_name, args, parent, **extra)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the table's order, which is by use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command; if its package is not installed, the error says so."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command = _load(cmd_name, entry)
        if isinstance(command, click.Group):
            for name, part in entry.parts.items():
                command.add_command(Deferred(name, part))
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Complete commands from the table, without importing any; and the group's own options."""
        # Loaded here, as in _show_version(): only a shell's Tab needs it.
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return super(click.Group, self).shell_complete(ctx, incomplete)
        return [
            CompletionItem(name, help=entry.summary)
            for name, entry in COMMANDS.items()
            if name.startswith(incomplete)
        ]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one may have been meant."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            # Loaded here, as in _show_version(): a daemon would keep it for all its life.
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=2, cutoff=0.5)
            advice = f"Did you mean {' or '.join(near)}?" if near else "See nnha --help."
            ctx.fail(f"There is no command '{args[0]}'. {advice}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's own shape
        """Run the command; Ctrl-C ends it with one line and exit code 130."""
        with interruptible(), report_unwritten_output():
            try:
                return self._run(ctx)
            except click.UsageError as wrong:
                # click prints the usage first, and what is wrong below it.
                click.echo(f"Error: {wrong.format_message()}", err=True)
                if wrong.ctx is not None:
                    click.echo(wrong.ctx.get_usage(), err=True)
                    click.echo(f"Try '{wrong.ctx.command_path} --help' for help.", err=True)
                ctx.exit(wrong.exit_code)

    def _run(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's own shape
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            # Found missing only when it was needed.
            if told := needed_extra(ctx.invoked_subcommand or "", error.name):
                raise click.UsageError(told) from error
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


def _show_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - click's own shape
    if wanted and not ctx.resilient_parsing:
        # Loaded here: no command needs it.
        from ha.daemon.version import version

        click.echo(f"nnha {version()}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version and exit.",
)
def main() -> None:
    """High availability for HDFS NameNodes.

    Commands read core-site.xml and hdfs-site.xml from --conf-dir or $HADOOP_CONF_DIR.
    """
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper) and out.encoding.lower() not in ("utf-8", "utf8"):
        # An arrow must not end a command in a locale that has none, least of all after the deed.
        out.reconfigure(errors="replace")


zkfc = Deferred("zkfc", COMMANDS["zkfc"])
"""The script of Hadoop's name: ``nnha zkfc``, and loaded as a daemon like it."""


if __name__ == "__main__":
    main(prog_name="nnha")
