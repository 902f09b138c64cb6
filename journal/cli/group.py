"""``nnha journal``: the group of its subcommands."""

import click

from journal.cli.admit import admit_command
from journal.cli.format import format_command
from journal.cli.recover import recover_command
from journal.cli.status import segments_command, status_command
from journal.cli.verify import verify_command


@click.group()
def journal() -> None:
    """Inspect and format the quorum journal."""


for _command in (
    status_command,
    segments_command,
    verify_command,
    recover_command,
    format_command,
    admit_command,
):
    journal.add_command(_command)
