"""What recorded looks say of DataNodes and of the last hour."""

from collections.abc import Mapping
from dataclasses import replace
from math import sin
from typing import Any, Final

from ha.cluster.files_view import DatanodeView, FilesView, VolumeView
from ha.cluster.last_hour import HourSample, LastHour

FILES: Final = FilesView(
    safe_mode=None,
    live_datanodes=12,
    stale_datanodes=0,
    dead_datanodes=0,
    capacity_bytes=480 << 40,
    used_bytes=211 << 40,
    remaining_bytes=260 << 40,
    blocks=18_204_331,
    under_replicated=0,
    missing=0,
    corrupt=0,
    datanodes=tuple(
        DatanodeView(
            f"u{number}", f"d{number}.example", f"10.0.{number % 3}.{number}:9866", "live", 1.0,
            4_000_000 + number, 0,
            tuple(
                VolumeView(f"v{number}-{each}", "DISK", False, 20 << 40, used << 40, 9 << 40, 9)
                for each in (1, 2)
                for used in (6 + number % 5 * 2,)
            ),
            rack=f"/room1/rack{number % 3 + 1}", version="0.2.0",
        )
        for number in range(1, 13)
    ),
)  # fmt: skip

NODES: Final = [
    {
        "uuid": "u3", "host": "d3.example", "address": "10.0.0.3:9866", "state": "stale",
        "last_contact_seconds": 41.2, "blocks": 4000, "failed_volumes": 1,
        "volumes": [
            {
                "uuid": f"v{number}", "type": "DISK", "failed": number == 2,
                "capacity_bytes": 4 << 40, "used_bytes": number << 40, "remaining_bytes": 1 << 40,
                "blocks": 2000,
            }
            for number in (1, 2)
        ],
    },
    {
        "uuid": "u1", "host": "d1.example", "address": "10.0.0.1:9866", "state": "live",
        "last_contact_seconds": 1.0, "blocks": 0, "failed_volumes": 0, "volumes": [],
    },
]  # fmt: skip
"""As the NameNode's page lists them."""


def hour(role: str, *, started: float = 280_000.0, missing: range = range(0)) -> LastHour:
    """Return an hour of one sample each half minute, but for the numbers in ``missing``."""
    active = role == "active"
    return LastHour(
        started,
        30.0,
        tuple(
            HourSample(
                age_seconds=3590.0 - 30 * number,
                role=role,
                edits_per_second=800 + 300 * sin(number / 7) + 40 * (number % 5),
                calls_per_second=4200 + 1500 * sin(number / 9) + 200 * (number % 3),
                commit_median_seconds=0.004 + 0.001 * sin(number / 5) if active else None,
                commit_p99_seconds=0.012 + 0.006 * (number % 11 == 0) if active else None,
                lag_seconds=None if active else 1.0 + 0.5 * sin(number / 4),
                under_replicated=(max(0, 40 - number) if active else None),
            )
            for number in range(120)
            if number not in missing
        ),
    )


def many(number: int, racks: int) -> tuple[DatanodeView, ...]:
    """Return that number of DataNodes, of which the first few are not well."""
    states = {0: "dead", 1: "stale", 2: "stale"}
    return tuple(
        replace(
            FILES.datanodes[one % 12], uuid=f"u{one}", host=f"dn{one:04}.example",
            state=states.get(one, "live"), rack=f"/room{one % racks // 4}/rack{one % racks}",
            last_contact_seconds=900.0 if one == 0 else 41.0 if one < 3 else 1.0,
            failed_volumes=int(one == 3), service="decommissioning" if one == 4 else "in service",
            blocks_left=1200 if one == 4 else None,
        )
        for one in range(number)
    )  # fmt: skip


LACKING: Final[Mapping[str, Any]] = {
    "healthy": False,
    "totals": {"not_listed": 1205},
    "blocks": [
        {
            "path": "/user/a b/part#1?", "block": "blk_1073741901_1077", "bytes": 134_217_728,
            "expected": 3, "live": 1, "state": "under-replicated",
            "action": "it is being copied: 1 copy is on its way",
            "replicas": [
                {
                    "datanode": "d3.example", "address": "10.0.0.3:9866", "rack": "/room1/rack1",
                    "storage": "s", "type": "DISK", "state": "live", "counts": True,
                    "why": "it counts: it is live", "fate": "it stays",
                }
            ],
        },
    ],
}  # fmt: skip
"""As the active NameNode answers /fsck."""


def listed(name: str, kind: str = "FILE", **more: object) -> dict[str, object]:
    """Return an entry of a folder as WebHDFS lists it."""
    return {
        "pathSuffix": name, "type": kind, "length": 5 << 30, "owner": "alice", "group": "staff",
        "permission": "640", "accessTime": 0, "modificationTime": 1_786_000_000_123,
        "replication": 3, "blockSize": 1 << 27, "childrenNum": 0, "fileId": 16_400,
        "storagePolicy": 0, **more,
    }  # fmt: skip


def listing(*entries: Mapping[str, object], remaining: int = 0) -> Mapping[str, Any]:
    """Return what the active NameNode answers to LISTSTATUS_BATCH."""
    found = {"FileStatuses": {"FileStatus": list(entries)}}
    return {"DirectoryListing": {"partialListing": found, "remainingEntries": remaining}}


FOLDER: Final = listing(
    listed("a folder", "DIRECTORY", permission="1777", length=0, replication=0),
    listed("part#1?&50%", permission="755", aclBit=True),
    listed("to there", "SYMLINK", permission="777", symlink="/elsewhere", replication=0),
    remaining=1,
)
