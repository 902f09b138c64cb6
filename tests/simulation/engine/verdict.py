"""How a simulated run can fail."""


class Violated(Exception):
    """An invariant of docs/reference/invariants.md does not hold."""

    def __init__(self, invariant: str, what: str) -> None:
        super().__init__(f"{invariant}: {what}")
        self.invariant = invariant


class Stuck(Exception):
    """Nothing happens any more, or far too much does."""


class PowerCut(BaseException):
    """The machine or the process is gone; no code of ours may do anything there any more."""
