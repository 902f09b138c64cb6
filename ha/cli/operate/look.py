"""The look before a change: silence is met by asking again, with more time, before a refusal."""

from collections.abc import Callable
from typing import Final, TypeVar

import click

from ha.cluster.daemon_queries import look_at
from ha.cluster.view import ClusterView
from ha.console.cluster_options import ClusterCommand
from ha.console.result import Code, Ending
from ha.daemon import event_loop

LOOK_SECONDS: Final = 2.0
PATIENT_LOOK_SECONDS: Final = 10.0
"""How long the second look lasts; one that all answer is over sooner."""

P = TypeVar("P")


def look_and_plan(
    place: ClusterCommand, planned: Callable[[ClusterView], P | Ending]
) -> P | Ending:
    """Return what ``planned`` makes of a look at the cluster.

    Where it could not decide because a process was silent, it gets a second look that lasts longer.
    """
    found = planned(_look(place, place.timeout_seconds))
    if not isinstance(found, Ending) or found.code is not Code.NO_ANSWER:
        return found
    if place.timeout_seconds >= PATIENT_LOOK_SECONDS:
        return found
    if place.output == "table":
        click.echo(
            f"not all answered within {place.timeout_seconds:g} s; asking once more, for up to "
            f"{PATIENT_LOOK_SECONDS:g} s",
            err=True,
        )
    return planned(_look(place, PATIENT_LOOK_SECONDS))


def _look(place: ClusterCommand, seconds: float) -> ClusterView:
    return event_loop.run(look_at(place.configuration, place.nameservice, deadline_seconds=seconds))
