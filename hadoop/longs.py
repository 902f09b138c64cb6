"""Java's long, which messages carry as uint64.  Pure."""


def signed(number: int) -> int:
    """Return the long that travelled without its sign."""
    return number - (1 << 64) if number >> 63 else number


def unsigned(number: int) -> int:
    """Return the number by which a long travels."""
    return number % (1 << 64)
