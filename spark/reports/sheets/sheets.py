"""The sheets of a report: which figures each section shows, and in which words.  Pure."""

from collections.abc import Callable
from typing import TypeVar

from spark.reports.figures import Sheet
from spark.reports.model import NamespaceReport
from spark.reports.sheets.files import age_sheet, small_sheet
from spark.reports.sheets.growth import growth_sheet
from spark.reports.sheets.limits import largest_sheet, quota_sheet, redundancy_sheet
from spark.reports.sheets.usage import directories_sheet, usage_sheet

T = TypeVar("T")


def sheets_of(report: NamespaceReport) -> tuple[Sheet, ...]:
    """Return the sheet of every section that the report has, in reading order."""
    found: list[Sheet] = []
    _if(found, report.usage, lambda part: usage_sheet(part, report.settings.top))
    _if(found, report.directories, directories_sheet)
    _if(found, report.small_files, small_sheet)
    _if(found, report.age, age_sheet)
    _if(found, report.redundancy, lambda part: redundancy_sheet(part, report))
    _if(found, report.quota, quota_sheet)
    _if(found, report.largest, largest_sheet)
    _if(found, report.growth, lambda part: growth_sheet(part, report.settings.top))
    return tuple(found)


def _if(found: list[Sheet], part: T | None, make: Callable[[T], Sheet]) -> None:
    if part is not None:
        found.append(make(part))
