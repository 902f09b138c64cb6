"""The plots of comebacks: which messages they wait for, one after the other, and what happens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_SOON: Final = (0.01, 0.05)
_SOME: Final = (0.05, 0.2, 0.6)
_AWHILE: Final = (0.3, 0.6, 0.9)
_LONG: Final = (0.3, 0.6)

WEARING: Final = frozenset(
    {"wipe", "rot-alive", "torn", "kill-at-disk", "wipe-before", "wipe-before-and-break"}
)
DELAYED: Final[Mapping[str, Sequence[float]]] = {
    "torn": (0.0,),
    "stray": (0.0, 0.0005),
    "kill-at-disk": (0.0,),
    "hang": (0.0,),
    "again": (0.0, 0.02, 0.2),
    "again-rotten": (0.3, 1.0, 2.5),
    "again-rotting": (0.05, 0.2, 0.4),
}
"""How much later than its message a strike falls, where that is not at once."""


@dataclass(frozen=True, slots=True)
class Step:
    """What strikes at a message after ``skip`` others, on ``it`` (the first step's node) or
    ``another``.
    """

    what: str
    does: str
    who: str = "it"
    lasts: Sequence[float] = _SOON
    skip: Sequence[int] = (0,)


@dataclass(frozen=True, slots=True)
class Plot:
    """Steps, one after the other."""

    steps: tuple[Step, ...]


_AWAY: Final = Step("answer Write", "isolate", lasts=_AWHILE, skip=(0, 1, 3))
_DOWN: Final = Step("answer Write", "kill", lasts=_AWHILE, skip=(0, 1, 3))
_WIPED: Final = Step("answer Write", "wipe", skip=(0, 1, 3, 6))
_ROTTEN: Final = Step("answer Write", "rot", lasts=_SOON, skip=(6, 12, 20))

_INTO_THE_SEGMENT: Final = (
    # What the node fetches comes late, or twice, or to another life of it.
    (_AWAY, Step("answer GET", "hold", lasts=_SOME)),
    (_AWAY, Step("answer GET", "hold-for-release"), Step("answer StartLogSegment", "release")),
    (_ROTTEN, Step("answer GET", "hold", lasts=_SOME)),
    (_AWAY, Step("answer GET", "hang", lasts=_SOON)),
    *((_AWAY, Step("answer GET", "hold-for-rival", lasts=_LONG)),) * 2,
    (_AWAY, Step("CatchUp", "break"), Step("answer GET", "hold", lasts=_SOME)),
    (_AWAY, Step("CatchUp", "kill-before")),
    (_AWAY, Step("CatchUp", "rot-before")),
    (_AWAY, Step("CatchUp", "wipe-before")),
    (_AWAY, Step("CatchUp", "again")),
    *((_AWAY, Step("CatchUp", "again-rotten")),) * 4,
    *((_AWAY, Step("CatchUp", "again-rotting")),) * 4,
    (_DOWN, Step("ResumeSegment", "again")),
    (_DOWN, Step("ResumeSegment", "wipe-before")),
)
# Its writer keeps all, and sends it from the middle of a batch on, or while the node fetches it.
_TORN: Final = (
    (Step("Write", "torn", skip=(0, 1, 2, 4)),),
    (Step("Write", "torn", skip=(0, 1, 2, 4)),),
    (_ROTTEN, Step("CatchUp", "wipe-before-and-break"), Step("answer GET", "hold", lasts=(1.0,))),
)
# Another writer's edits, and what was decided about them, lie in the way.
_STRAYS: Final = ((Step("answer Write", "stray", lasts=_SOON, skip=(0, 1, 2)),),)
_DECIDED: Final = (
    (
        Step("answer StartLogSegment", "stray", lasts=(0.002,)),
        Step("PrepareRecovery", "others-accept-never"),
        Step("answer AcceptRecovery", "hand-over", lasts=_SOON),
    ),
)
_TO_THE_VOTE: Final = (
    (_WIPED, Step("Admit", "kill-before")),
    (_WIPED, Step("Admit", "again")),
    (_WIPED, Step("answer Admit", "hold", lasts=_LONG)),
    (
        _WIPED,
        Step("answer GetPeerManifest", "pass", who="another"),
        Step("answer GetJournalState", "hold-for-release", who="another"),
        Step("answer FinalizeLogSegment", "release"),
    ),
    (_WIPED, Step("answer ResumeSegment", "others-write-late", lasts=(0.3,))),
    *(
        (
            Step("answer Write", "pass"),
            Step("answer Write", "isolate", who="another", lasts=(0.8, 1.5)),
            Step("answer PurgeLogs", "wipe"),
        ),
    )
    * 2,
    (
        Step("answer Write", "rival"),
        Step("GetJournalState", "others-promise-late", lasts=(0.6,)),
        Step("answer NewEpoch", "wipe", lasts=(0.01,)),
    ),
)
_FROM_PEERS: Final = (
    *((_DOWN, Step("answer GET", "hold-for-release"), Step("answer PurgeLogs", "release")),) * 5,
    (_DOWN, Step("answer GET", "kill-at-disk")),
    (_WIPED, Step("answer GET", "kill-at-disk")),
    *(
        (
            Step("answer Write", "pass"),
            Step("FinalizeLogSegment", "kill", who="another", lasts=_SOME),
            Step("answer FinalizeLogSegment", "rot-alive"),
            *(Step("GET", "twice", who="another"),) * 3,
        ),
    )
    * 2,
)
_BY_THE_VOTERS: Final = (
    (
        _WIPED,
        Step("answer GetJournalState of a peer", "hold-for-rival", lasts=_LONG, skip=(4, 5, 8, 9)),
    ),
)
PLOTS: Final[Mapping[str, tuple[Plot, ...]]] = {
    about: tuple(map(Plot, plots))
    for about, plots in {
        "segment": _INTO_THE_SEGMENT,
        "torn": _TORN,
        "strays": _STRAYS,
        "decided": _DECIDED,
        "vote": _TO_THE_VOTE,
        "peers": _FROM_PEERS,
        "voters": _BY_THE_VOTERS,
    }.items()
}
"""By what a world is about."""
