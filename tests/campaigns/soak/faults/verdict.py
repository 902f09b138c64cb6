"""What a run shows: lost writes, wrong answers, epochs with two actives, times without service."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from tests.campaigns.soak.faults.campaign import FIRST_READER, Played
from tests.campaigns.soak.faults.file_clients import Outcome
from tests.campaigns.soak.faults.fitness import Gap, gaps
from tests.campaigns.soak.faults.history import Ask, Call, paths_of
from tests.campaigns.soak.faults.linearizability import Violation, judge

BOUND_SECONDS: Final = 75.0
"""How long no client may get an answer while the cluster must serve.

The slowest way there by default: a frozen active is found by the health check of its ZKFC
(ha.health-monitor.rpc-timeout.ms, 45 s), which gives up its lock; a client's attempts, the fencing
of a host that does not answer and the start of an ended NameNode come on top.
"""
LEAST_CALLS_PER_FAULT: Final = 3
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Verdict:
    """The findings, in words; none if all is well. ``facts`` is for ``--json``."""

    findings: tuple[str, ...]
    facts: Mapping[str, object]


def verdict(played: Played) -> Verdict:
    answered = [call for call in played.calls if call.known]
    judged = judge(played.calls)
    violations, undecided = judged.violations, judged.undecided
    found = gaps(played.conditions, _instants(answered), played.ended)
    longest = max((gap.seconds for gap in found), default=0.0)
    faults = sum(len(each.faults) for each in played.rounds)
    findings = [
        *(_wrong(violation) for violation in violations[:_SHOWN]),
        *(
            f"epoch {epoch}: {' and '.join(who)} called themselves active"
            for epoch, who in _shared(played).items()
        ),
    ]
    if len(violations) > _SHOWN:
        findings.append(f"and {len(violations) - _SHOWN} more paths without an order")
    claims = (
        (undecided, f"the search of {len(undecided)} histories is undecided: {undecided[:1]}"),
        (played.trouble, played.trouble),
        (played.verify, played.verify),
        *_of_files(played.files, faults),
        (played.let_in, "; ".join(played.let_in)),
        (played.disturbed, "; ".join(played.disturbed)),
        (played.journal_gaps, f"edits are missing from the journal: {played.journal_gaps[:5]}"),
        (played.journal_forks, f"edits differ between nodes: {played.journal_forks[:5]}"),
        (longest > BOUND_SECONDS, f"nobody served for {longest:.1f} s, although it could"),
        (
            len(answered) < LEAST_CALLS_PER_FAULT * faults,
            f"only {len(answered)} calls were answered in {faults} faults",
        ),
    )
    findings += [text for holds, text in claims if holds]
    return Verdict(tuple(findings), _facts(played, answered, found, violations, faults))


def _of_files(files: Outcome | None, faults: int) -> Sequence[tuple[object, str]]:
    if files is None:
        return ()
    wrong = "; ".join(files.wrong[:_SHOWN])
    return (
        (files.wrong, f"{len(files.wrong)} files are not as they were written: {wrong}"),
        (files.acknowledged < faults, f"only {files.acknowledged} calls on files succeeded"),
    )


def _facts(
    played: Played,
    answered: Sequence[Call],
    found: Sequence[Gap],
    violations: Sequence[Violation],
    faults: int,
) -> dict[str, object]:
    seconds = played.rounds[-1].ended - played.rounds[0].began if played.rounds else 0.0
    per_round = _worst_per_round(played, found)
    settles = [each.settle_seconds for each in played.rounds]
    return {
        "faults": faults,
        "rounds": len(played.rounds),
        "kinds": dict(Counter(f.kind for each in played.rounds for f in each.faults).most_common()),
        "skipped": dict(played.skipped),
        "faults_per_hour": round(3600 * faults / seconds) if seconds else 0,
        "calls": len(played.calls),
        "answered": len(answered),
        "unanswered": len(played.calls) - len(answered),
        "paths": len(paths_of(played.calls)),
        "moves": sum(call.ask is Ask.MOVE and not call.answer for call in played.calls),
        "paths_without_an_order": len(violations),
        "epochs": len(played.claims),
        "epochs_with_two_actives": len(_shared(played)),
        "looks": played.looks,
        "journal_gaps": len(played.journal_gaps),
        "journal_forks": len(played.journal_forks),
        "unavailable_seconds": distribution([worst for _, worst in per_round]),
        "unavailable_seconds_by_kind": _by_kind(per_round),
        "settle_seconds": distribution(settles),
        "bound_seconds": BOUND_SECONDS,
        "files": None if played.files is None else asdict(played.files),
        "revived": dict(sorted(played.revived.items())),
        "commands": dict(sorted(played.commands.items())),
    }


def _instants(answered: Sequence[Call]) -> list[float]:
    """Return when the clients that also write were answered."""
    return [call.ended for call in answered if call.client < FIRST_READER]


def _shared(played: Played) -> dict[int, list[str]]:
    return {epoch: sorted(who) for epoch, who in played.claims.items() if len(who) > 1}


def distribution(values: Sequence[float]) -> dict[str, float]:
    """Return median, two percentiles and the most of these seconds."""
    if not values:
        return {}
    ordered = sorted(values)

    def at(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2)

    return {
        "median": round(statistics.median(ordered), 2),
        "p90": at(0.9),
        "p99": at(0.99),
        "max": round(ordered[-1], 2),
    }


def _worst_per_round(played: Played, found: Sequence[Gap]) -> list[tuple[str, float]]:
    """Return each round's kinds and the longest gap that began in it or in the calm behind it."""
    rows: list[tuple[str, float]] = []
    if not played.rounds:  # the first one was not got through
        return rows
    edges = [*(each.began for each in played.rounds[1:]), played.ended]
    for each, until in zip(played.rounds, edges, strict=True):
        inside = [gap.seconds for gap in found if each.began <= gap.began + gap.seconds
                  and gap.began < until]  # fmt: skip
        kinds = " and ".join(sorted(fault.kind for fault in each.faults))
        rows.append((kinds, max(inside, default=0.0)))
    return rows


def _by_kind(rows: Sequence[tuple[str, float]]) -> dict[str, dict[str, float]]:
    alone: defaultdict[str, list[float]] = defaultdict(list)
    for kinds, worst in rows:
        alone["two at once" if " and " in kinds else kinds].append(worst)
    return {
        kind: {"rounds": len(values), **distribution(values)}
        for kind, values in sorted(alone.items(), key=lambda item: -max(item[1]))
    }


def _wrong(violation: Violation) -> str:
    near = violation.stuck[0].began if violation.stuck else 0.0
    calls = [call for call in violation.calls if call.began <= near][-8:]
    calls += [call for call in violation.stuck if call not in calls]
    told = "\n".join(
        f"    {call.began:.3f}-{call.ended:.3f} client {call.client} {call.ask} {call.path}"
        f" {call.value} -> {call.answer or 'done'} {call.by}".rstrip()
        for call in calls
    )
    return f"no order explains what clients were told of {violation.path}; at last:\n{told}"
