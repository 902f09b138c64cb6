"""JSON's values as YAML: blocks for objects and lists, JSON's spelling for every scalar.  Pure.

YAML 1.2 reads each JSON scalar as JSON does, so that no second library is needed to write one.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
"""Plain words that YAML 1.1 takes for something else than a text."""


def as_yaml(value: Mapping[str, object]) -> str:
    """Return one YAML document, in the order of the keys, ending in a newline."""
    return "".join(f"{line}\n" for line in _lines(value))


def _lines(value: object) -> Iterator[str]:
    match value:
        case dict() if value:
            for key, entry in value.items():
                yield from _entry(f"{_key(key)}:", entry)
        case list() | tuple() if value:
            for entry in value:
                first, *rest = _lines(entry)
                yield f"- {first}"
                yield from (f"  {line}" for line in rest)
        case _:
            yield json.dumps(value, ensure_ascii=False)


def _entry(label: str, value: object) -> Iterator[str]:
    if isinstance(value, Mapping | Sequence) and not isinstance(value, str) and value:
        yield label
        yield from (f"  {line}" for line in _lines(value))
    else:
        yield f"{label} {json.dumps(value, ensure_ascii=False)}"


def _key(key: str) -> str:
    plain = _PLAIN_KEY.fullmatch(key) is not None and key.lower() not in _WORDS
    return key if plain else json.dumps(key)
