"""Why an edit cannot be applied to the namespace."""


class ApplyError(Exception):
    """An edit contradicts the namespace: the log and the image do not belong together."""


class TxIdOutOfOrder(ApplyError):
    """The edit is not the one after the last applied: there is a gap, or a repetition."""

    def __init__(self, expected: int, found: int) -> None:
        super().__init__(f"expected transaction {expected} next, got {found}")
        self.expected = expected
        self.found = found
