"""The tables of docs/configuration.md, made from the product's own."""

from itertools import groupby
from pathlib import Path

from ha.conf.hazards import HAZARDS, Daemon
from ha.conf.keys.unused import NOT_USED, NOT_USED_PREFIXES

PAGE = Path(__file__).parents[3] / "docs/configuration.md"


def hazards() -> str:
    rows = ["| Key | Default | Does not start otherwise | Because |", "|---|---|---|---|"]
    for one in HAZARDS:
        daemons = ", ".join(daemon for daemon in Daemon if daemon in one.daemons)
        default = f"`{one.key.default}`" if one.key.default else "empty"
        rows.append(f"| `{one.key.name}` | {default} | {daemons} | {one.meaning} |")
    return "\n".join(rows)


def not_used() -> str:
    rows = ["| Keys | Not used, because |", "|---|---|"]
    for reason, names in groupby(NOT_USED.items(), key=lambda one: one[1]):
        rows.append(f"| {' '.join(f'`{name}`' for name, _ in names)} | {reason} |")
    rows += [f"| `{prefix}*` | {reason} |" for prefix, reason in NOT_USED_PREFIXES.items()]
    return "\n".join(rows)


def with_tables(page: str) -> str:
    for name, table in {"hazards": hazards(), "not-used": not_used()}.items():
        before, start, rest = page.partition(f"<!-- table: {name} -->\n")
        _, end, after = rest.partition("<!-- end -->\n")
        page = f"{before}{start}{table}\n{end}{after}"
    return page


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
