"""What can be wrong with an edit log."""


class EditsError(Exception):
    """Edits that cannot be read or written; says where as far as that is known.

    Args:
        what: the problem, and what was found.
        file: the file's name.
        offset: where the op's frame begins, in bytes from the start of the data.
        txid: the op's transaction id.
    """

    def __init__(
        self,
        what: str,
        *,
        file: str | None = None,
        offset: int | None = None,
        txid: int | None = None,
    ) -> None:
        super().__init__(what, file, offset, txid)
        self.what = what
        self.file = file
        self.offset = offset
        self.txid = txid

    def __str__(self) -> str:
        """Return one sentence: file, offset and transaction first."""
        facts = ((self.file, "{}"), (self.offset, "offset {}"), (self.txid, "transaction {}"))
        where = ", ".join(form.format(fact) for fact, form in facts if fact is not None)
        return f"{where}: {self.what}" if where else self.what

    def at(self, file: str, base: int = 0) -> "EditsError":
        """Return the same error with the file named and the offset counted from its start."""
        offset = None if self.offset is None else self.offset + base
        return EditsError(self.what, file=file, offset=offset, txid=self.txid)
