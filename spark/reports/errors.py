"""What can be wrong with the input of a report."""


class NotAnExport(Exception):
    """The folder is no export of a format that we read: wrong usage, nothing is damaged."""


class ExportDamaged(Exception):
    """The export is torn: a file cannot be read, or rows are missing."""
