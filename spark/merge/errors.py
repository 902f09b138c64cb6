"""Why a merge cannot go on as planned."""


class MergeFailed(Exception):
    """The merge could not be done and nothing was published; says what and where."""


class NeedsWholeNamespace(Exception):
    """Only the single-process merge is exact here; the text says why, for the operator.

    Raised by the part that finds it out: the planner, the lookup (references below a directory that
    was asked about), the sparse tree, the expansion of a deleted directory.
    """


class EditsDoNotBelong(Exception):
    """The edits contradict the image: they were written on another one.  Nothing is published."""


class Miss(NeedsWholeNamespace):
    """The replay asked for something of the image that was not looked up: a hole in the planner.

    The single-process merge has no such thing as a plan, so it is right where we are not.
    """

    def __init__(self, directory: int, name: bytes) -> None:
        """Say which name (of an image's directory, by its inode id) was asked for."""
        super().__init__(
            f"the edits need {name!r} in directory {directory}, which nobody had foreseen; please "
            "report this with the edits"
        )
        self.directory = directory
        self.name = name
