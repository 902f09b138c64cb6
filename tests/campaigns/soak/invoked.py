"""A soak as `./run soak NAME` starts it: a click command with an exit code."""

from collections.abc import Sequence

import click


def exit_code(command: click.Command, arguments: Sequence[str]) -> int:
    try:
        command.main(
            args=list(arguments), prog_name=f"./run soak {command.name}", standalone_mode=False
        )
    except SystemExit as end:
        return int(end.code or 0)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return 0
