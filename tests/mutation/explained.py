"""The slips that no test can notice, or need notice, each with its reason."""

import json
from collections.abc import Mapping
from pathlib import Path


def explained() -> Mapping[str, str]:
    return reasons_in("explained.json")


def reasons_in(name: str) -> Mapping[str, str]:
    reasons: dict[str, str] = {}
    listed = json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    for why, names in listed.items():
        reasons |= dict.fromkeys(names, why)
    return reasons
