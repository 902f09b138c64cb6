"""What becomes of a hosts file when a DataNode is to leave, or to serve again.  Pure.

See docs/datanodes.md#decommission-a-datanode.
"""

import json
from typing import Any


def text_with(text: str, host: str, *, excluded: bool) -> str:
    """Return an exclude list with or without a host; comments and all else stay."""
    lines = []
    for line in text.splitlines():
        words, sign, comment = line.partition("#")
        kept = [word for word in words.split() if word.lower() != host.lower()]
        if len(kept) == len(words.split()):
            lines.append(line)
        elif kept or sign:
            lines.append(" ".join([*kept, *([f"{sign}{comment}"] if sign else [])]))
    if excluded:
        lines.append(host)
    return "".join(f"{line}\n" for line in lines)


def json_with(text: str, host: str, state: str, until_ms: int | None = None) -> str:
    """Return CombinedHostFileManager's list with a host in a state.

    A list without any host in NORMAL lets all DataNodes in; with one, all others need an entry. So
    a host that serves again goes from a list that has no other in NORMAL.

    Raises:
        ValueError: if the text is no such list.
    """
    entries: Any = json.loads(text) if text.strip() else []
    if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        raise ValueError("it is no list of objects")
    name, _, port = host.partition(":")
    mine = [
        one
        for one in entries
        if str(one.get("hostName")).lower() == name.lower() and str(one.get("port") or "") == port
    ]
    if not mine and state == "NORMAL":
        return text
    if not mine:
        mine = [{"hostName": name} | ({"port": int(port)} if port else {})]
        entries += mine
    others = [one for one in entries if one not in mine]
    if state == "NORMAL" and all((one.get("adminState") or state) != state for one in others):
        return json.dumps(others, indent=2) + "\n"
    for one in mine:
        one["adminState"] = state
        one.pop("maintenanceExpireTimeInMS", None)
        if until_ms is not None:
            one["maintenanceExpireTimeInMS"] = until_ms
    return json.dumps(entries, indent=2) + "\n"
