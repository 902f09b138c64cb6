"""``nnha completion``: prints the script with which a shell completes commands."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import click
from click.shell_completion import CompletionItem, get_completion_class

from ha.conf.configuration import load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.topology import namenodes, nameservice_of
from ha.console.exit_codes import DONE

VARIABLE = "_NNHA_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
_FOR_PATHS: Final = {
    "bash": (
        'read type value <<< "$completion"',
        """read -r type value <<< "$completion"
        printf -v value %q "$value"
        [[ $value == */ ]] && compopt -o nospace""",
    ),
    "zsh": (
        "compadd -U -V unsorted -a completions",
        """compadd -U -V unsorted -S '' -- ${(M)completions:#*/}
        compadd -U -V unsorted -- ${completions:#*/}""",
    ),
    "fish": ('string split ","', 'string split -m 1 ","'),
}
"""What click's scripts lack for names of files: blanks and commas in them, and no blank after /."""


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(*, shell: str) -> None:
    """Print the completion script of a SHELL.

    \b
    bash   nnha completion bash > /etc/bash_completion.d/nnha
    zsh    nnha completion zsh > ~/.zfunc/_nnha      (a folder of $fpath)
    fish   nnha completion fish > ~/.config/fish/completions/nnha.fish
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.ClickException(f"this version of click knows no {shell}")
    root = click.get_current_context().find_root().command
    click.echo(found(root, {}, "nnha", VARIABLE).source().replace(*_FOR_PATHS[shell]))
    sys.exit(DONE)


def namenode_ids(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the NameNodes of the configured nameservice; none where it cannot be read."""
    with suppress(ConfigurationError):
        folder = ctx.params.get("conf_dir")
        configuration = load_configuration(folder if isinstance(folder, Path) else None)
        name = ctx.params.get("nameservice") or nameservice_of(configuration)
        return [
            CompletionItem(one.namenode, help=str(one.rpc))
            for one in namenodes(configuration, name)
            if one.namenode.startswith(incomplete)
        ]
    return []
