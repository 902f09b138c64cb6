"""Spans of time as people read them.  Pure."""

from datetime import datetime, timedelta

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR


def span(seconds: float) -> str:
    """Format with two units at most: ``0.13 s``, ``42 s``, ``3m 12s``, ``5h 10m``, ``12d 4h``."""
    if seconds < 10:
        return f"{max(0.0, seconds):.2f} s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m {whole % _MINUTE}s"
    if whole < _DAY:
        return f"{whole // _HOUR}h {whole % _HOUR // _MINUTE}m"
    return f"{whole // _DAY}d {whole % _DAY // _HOUR}h"


def since(then: datetime, now: datetime) -> str:
    """Return how long ago it was; "0 s" for the future, as two machines' clocks may differ."""
    return span(max(timedelta(0), now - then).total_seconds())
