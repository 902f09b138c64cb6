"""Start a long campaign by its name: soaks look for faults, benches measure."""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

CAMPAIGNS: Final = {
    "soak": {"kill": "deploy.local.soak"},
    "bench": {"failover": "tests.bench.failover", "journal": "tests.bench.journal"},
}


def main(arguments: Sequence[str]) -> int:
    """Run ``soak NAME …`` or ``bench NAME …``; the module's ``main`` gets what follows."""
    kind, *rest = arguments
    known = CAMPAIGNS[kind]
    if not rest or rest[0] not in known:
        asked = f"there is no {kind} {rest[0]!r}" if rest else f"which {kind}?"
        sys.stderr.write(f"{asked}; there are: {', '.join(known)}\n")
        return 2
    return int(import_module(known[rest[0]]).main(rest[1:]))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
