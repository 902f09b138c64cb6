"""What can be wrong with a configuration, worded so that the reader knows what to change."""


class ConfigurationError(Exception):
    """The configuration cannot be used.

    The message says what was read (file, line, key), what was found there, and what to do.
    """


class BadValue(ValueError):
    """A value does not have the shape that its key wants; the message names that shape.

    Raised by the parsers of ``ha.conf.keys.units``.  ``Configuration`` turns it into a
    ``ConfigurationError`` that also names the key and where it was set.
    """
