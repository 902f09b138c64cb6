"""Something else in the place of a daemon, in the very sandbox of its unit."""

from pathlib import Path
from typing import Final

from tests import ROOT
from tests.deploy.systemd.machine import Done, Machine

UNITS: Final = ROOT / "deploy" / "systemd"
_LEFT_OUT: Final = ("Type=", "NotifyAccess=", "Restart", "WatchdogSec=", "ExecStart=", "Timeout")


def in_place_of(machine: Machine, unit: str, command: str) -> Done:
    """Run it with all that the unit (its file's name) says of the sandbox; what it printed."""
    lines = (UNITS / unit).read_text().splitlines()
    kept = [line for line in lines if not line.startswith(_LEFT_OUT)]
    at = kept.index("[Service]") + 1
    kept[at:at] = [
        "Type=oneshot",
        "RemainAfterExit=yes",
        f"ExecStart={command}",
        "ReadWritePaths=-/data",
    ]
    name = f"tried-{Path(unit).stem.removesuffix('@')}{'@' if '@' in unit else ''}.service"
    machine.write(f"/etc/systemd/system/{name}", "\n".join(kept) + "\n")
    machine.run("systemctl", "daemon-reload")
    started = name.replace("@", "@nn1")
    code = machine.run("systemctl", "start", started, check=False).code
    invocation = machine.shown(started, "InvocationID")["InvocationID"]
    machine.run("journalctl", "--sync")
    told = machine.run(
        "journalctl", "--no-pager", "-o", "cat", f"_SYSTEMD_INVOCATION_ID={invocation}"
    )
    machine.run("systemctl", "stop", started)
    return Done(code, told.output)


def levels(machine: Machine) -> dict[str, float]:
    """Return how exposed ``systemd-analyze security`` calls each of our loaded units."""
    lines = machine.run("systemd-analyze", "security", "--no-pager").output.splitlines()
    words = [line.split() for line in lines if line.startswith("nnha-")]
    return {unit: float(level) for unit, level, *_ in words}
