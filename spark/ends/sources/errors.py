"""Why an image or edits could not be had."""


class SourceError(Exception):
    """An image or an edit is missing, damaged or another cluster's, or there is no answer.

    The message names the file or the transaction, and says what to do.  Nothing of what could not
    be had is left behind.
    """
