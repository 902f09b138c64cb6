"""A report as JSON: fixed keys, exact numbers; the schema is in schemas/report.json."""

from dataclasses import asdict, fields
from typing import Any

from ha.console.result import API_VERSION
from spark.reports.model import NamespaceReport, Section


def document_of(report: NamespaceReport) -> dict[str, Any]:
    """Return the report as JSON's values, with every key; a section not asked for is null."""
    sections = {section.value: section.value.replace("-", "_") for section in Section}
    found = {
        name: getattr(report, field) and asdict(getattr(report, field))
        for name, field in sections.items()
    }
    return {
        "apiVersion": API_VERSION,
        "command": "namespace report",
        "source": asdict(report.source),
        "settings": asdict(report.settings),
        "sections": {name: _listed(part) for name, part in found.items()},
    }


def section_fields() -> tuple[str, ...]:
    """Return the report's fields that are sections; a test compares them with their names."""
    return tuple(
        field.name for field in fields(NamespaceReport) if field.name not in {"source", "settings"}
    )


def _listed(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return {key: _listed(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_listed(entry) for entry in value]
    return value
