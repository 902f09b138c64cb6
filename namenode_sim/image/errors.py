"""What can be wrong with an fsimage."""


class ImageError(Exception):
    """An fsimage cannot be read or written; the message says which, what was found, what to do."""
