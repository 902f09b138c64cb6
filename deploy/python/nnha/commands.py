"""The scripts of an installation: each finds nnha's packages first, and then runs its command."""

import sys

from nnha import activate


def main() -> None:
    activate(first=True)
    match sys.argv[1:]:
        case ["probe", address] if not address.startswith("-"):
            _probe(address)
    from ha.cli.main import main as nnha

    nnha(prog_name="nnha")


def haadmin() -> None:
    """Run Hadoop's ``haadmin``, for scripts that are there already."""
    activate(first=True)
    from ha.cli.hadoop.haadmin import haadmin as command

    command(prog_name="haadmin")


def zkfc() -> None:
    """Run Hadoop's ``zkfc``, for scripts that are there already."""
    activate(first=True)
    from ha.cli.main import zkfc as command

    command(prog_name="zkfc")


def _probe(address: str) -> None:
    """Answer a health check as containers run it: without click, in half the time.

    What is wrong with the address is reported by the command itself.
    """
    from ha.cli.probe.question import answer, parse

    try:
        question = parse(address)
    except ValueError:
        return
    verdict = answer(question)
    print(verdict.text)  # noqa: T201 - this is the command's output
    sys.exit(verdict.exit_code)
