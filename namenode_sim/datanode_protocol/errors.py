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


class PageNotHad(Exception):
    """A page of a DataNode could not be read; the message says why."""


class LeaseLapsed(Exception):
    """The active is without its read lease, and does not say what it is.

    Bad schedule: it calls itself a standby for a moment, and the active with the same transaction
    afterwards. A DataNode of Hadoop's takes that for an old claim, and obeys no NameNode until the
    next edit (BPOfferService.updateActorStatesFromHeartbeat).
    """

    def __init__(self) -> None:
        super().__init__(
            "This NameNode was the active, and is without its read lease: a majority of the "
            "JournalNodes has not answered in time. The heartbeat was taken in, and nothing is "
            "ordered; whom the DataNode obeys stays as it is"
        )
