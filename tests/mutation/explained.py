"""The slips that nobody can notice, or that need not be noticed, each with its reason."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_LIST: Final = Path(__file__).with_name("explained.json")


def explained() -> Mapping[str, str]:
    """Reasons by the name of a slip."""
    reasons: dict[str, str] = {}
    for why, names in json.loads(_LIST.read_text(encoding="utf-8")).items():
        reasons |= dict.fromkeys(names, why)
    return reasons
