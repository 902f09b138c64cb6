"""The scripts of an installation: each finds nnha's packages first, and then runs its command."""

from nnha import activate


def main() -> None:
    """``nnha``."""
    activate(first=True)
    from ha.cli.main import main as nnha

    nnha(prog_name="nnha")


def haadmin() -> None:
    """Hadoop's ``haadmin``, for scripts that are there already."""
    activate(first=True)
    from ha.cli.hadoop.haadmin import haadmin as command

    command(prog_name="haadmin")


def zkfc() -> None:
    """Hadoop's ``zkfc``, for scripts that are there already."""
    activate(first=True)
    from ha.cli.main import zkfc as command

    command(prog_name="zkfc")
