"""Which keys that are set have no effect here."""

from ha.conf.configuration import Configuration, nodes_of
from ha.conf.keys.unused import reason_not_used
from ha.conf.reader import Origin
from ha.conf.spelling import split_suffix
from ha.record import dataclass


@dataclass(frozen=True, slots=True)
class Ignored:
    """One setting that nnha does not use, and why."""

    name: str
    origin: Origin
    reason: str

    def __str__(self) -> str:
        """Format one line for the operator."""
        return f"{self.origin}: {self.name} is known to Hadoop and not used by nnha: {self.reason}"


def find_ignored(configuration: Configuration) -> tuple[Ignored, ...]:
    """Return the set keys of Hadoop that nnha does not use, without other programs' keys."""
    nodes, found = nodes_of(configuration), []
    for name, setting in sorted(configuration.settings.items()):
        reason = reason_not_used(name) or reason_not_used(split_suffix(name, nodes)[0])
        if reason is not None:
            found.append(Ignored(name, setting.origin, reason))
    return tuple(found)
