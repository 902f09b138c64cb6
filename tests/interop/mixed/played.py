"""A mixed cluster for a test, and what must hold at its end."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.local.demo.screen import Screen
from tests.campaigns.soak.java import campaign
from tests.interop.hadoop_jars import JarsMissing
from tests.interop.mixed.campaign import Campaign
from tests.interop.mixed.programs import Kind
from tests.needs import HADOOP_SERVER

PAUSE_SECONDS = 0.2
"""Other tests need the machine, too."""


@contextmanager
def played_on(kind: Kind, folder: Path) -> Iterator[Campaign]:
    """Hadoop's NameNodes on JournalNodes and ZKFCs of this kind, while a Java client writes."""
    screen = Screen.on_stderr_if(True)
    try:
        with campaign(folder, screen, kind, pause_seconds=PAUSE_SECONDS) as played:
            yield played
    except JarsMissing as missing:
        HADOOP_SERVER.skip(str(missing))


def ensure_well(played: Campaign) -> None:
    """Check that nothing acknowledged is missing, and never were two active."""
    facts = played.facts()
    findings = ("missing_writes", "duplicated_writes", "errors", "both_active_looks")
    assert not {name: facts[name] for name in findings if facts[name]}
    assert (facts["gaps"], facts["diverging"]) == (0, 0)
