"""Holds a document against one of the JSON Schema files of ha/cli/schemas.

Only the words that those files use are known; an unknown word fails, so that none is ignored.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import ha.cli

FOLDER = Path(ha.cli.__file__).parent / "schemas"
_DECORATION = {"$schema", "title", "description"}
_KNOWN = {
    "type", "enum", "const", "pattern", "items", "properties", "required", "additionalProperties",
} | _DECORATION  # fmt: skip

Schema = Mapping[str, object]


def load(name: str | Path) -> Schema:
    path = FOLDER / f"{name}.json" if isinstance(name, str) else name
    return cast(Schema, json.loads(path.read_text()))


def faults(name: str | Path, document: object) -> list[str]:
    """Return where the document differs from the schema; empty: nowhere."""
    return list(_faults(load(name), document, "$"))


def _faults(schema: Schema, value: object, where: str) -> Iterator[str]:
    unknown = set(schema) - _KNOWN
    if unknown:
        yield f"{where}: the schema uses {unknown}, which this check does not know"
    if "const" in schema and value != schema["const"]:
        yield f"{where}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in cast(list[object], schema["enum"]):
        yield f"{where}: {value!r} is none of {schema['enum']}"
    if "type" in schema and not _is_of(value, schema["type"]):
        yield f"{where}: {value!r} is no {schema['type']}"
    pattern = cast(str, schema.get("pattern", ""))
    if isinstance(value, str) and not re.search(pattern, value):
        yield f"{where}: {value!r} does not match {pattern}"
    if isinstance(value, list) and "items" in schema:
        for number, entry in enumerate(value):
            yield from _faults(cast(Schema, schema["items"]), entry, f"{where}[{number}]")
    if isinstance(value, dict) and "properties" in schema:
        yield from _faults_of_object(schema, value, where)


def _faults_of_object(schema: Schema, value: dict[str, object], where: str) -> Iterator[str]:
    properties = cast(dict[str, Schema], schema["properties"])
    for key in cast(list[str], schema.get("required", [])):
        if key not in value:
            yield f"{where}.{key} is missing"
    for key, entry in value.items():
        if key in properties:
            yield from _faults(properties[key], entry, f"{where}.{key}")
        elif schema.get("additionalProperties") is False:
            yield f"{where}.{key} is not in the schema"


def _is_of(value: object, wanted: object) -> bool:
    names = wanted if isinstance(wanted, list) else [wanted]
    return any(_is(value, name) for name in names)


def _is(value: object, name: object) -> bool:
    match name:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case _:
            raise ValueError(f"what is a {name}?")
