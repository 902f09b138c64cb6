"""Invariants that are checked in production: a core that has broken one must not go on."""


class InvariantBroken(Exception):
    """Two facts that cannot both hold.  Stop, and let a person look."""


def ensure(condition: bool, what: str) -> None:  # noqa: FBT001 - reads as an assertion
    """Check an invariant that must hold in production too.

    Raises:
        InvariantBroken: if it does not hold.
    """
    if not condition:
        raise InvariantBroken(what)
