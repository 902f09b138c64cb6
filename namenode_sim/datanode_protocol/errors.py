"""What is wrong with a DataNode's message."""


class BadMessage(Exception):
    """A message breaks a limit, or says what cannot be."""

    def __init__(self, method: str, found: str) -> None:
        super().__init__(f"{method}: {found}; nothing of it was taken in")


class Overtaken(Exception):
    """While a report was taken in, its DataNode registered anew or died, or the role changed."""

    def __init__(self, datanode: str) -> None:
        super().__init__(
            f"The report of DataNode {datanode} was not taken in to its end: meanwhile it "
            f"registered anew or died, or the role of this NameNode changed. What was judged "
            f"stays; the DataNode may report again"
        )
