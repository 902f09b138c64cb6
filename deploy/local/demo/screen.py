"""What a person sees while a local cluster is at work: a live table, timed lines, a summary."""

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.table import Table

from deploy.local.cluster.cluster import Cluster
from deploy.local.cluster.layout import Layout
from deploy.local.cluster.ports import HOST
from deploy.local.workload.trial import Failover
from ha.record import dataclass, field

_STYLES = {"active": "bold green", "killed": "bold red", "waiting": "dim", "starting": "yellow"}
_REFRESHES_A_SECOND = 10


@dataclass(slots=True)
class Screen:
    """Writes to one console; without a terminal every line is plain and nothing moves."""

    console: Console
    began: float = field(default_factory=time.monotonic)

    @classmethod
    def on_stderr_if(cls, quiet_stdout: bool) -> "Screen":  # noqa: FBT001 - reads as a sentence
        """Keep stdout for the JSON object where one is asked for."""
        return cls(Console(stderr=quiet_stdout, highlight=False, soft_wrap=True))

    def say(self, text: str) -> None:
        """Print one line, with the seconds since the start before it."""
        self.console.print(f"[dim]{time.monotonic() - self.began:6.1f} s[/]  {text}")

    def title(self, text: str) -> None:
        self.console.print()
        if self.console.is_terminal:
            self.console.rule(f"[bold]{text}", align="left")
        else:
            self.console.print(f"== {text}")

    @contextlib.contextmanager
    def watching(self, cluster: Cluster) -> Iterator[None]:
        """Show a table of the cluster's parts that follows them while the block runs."""
        if not self.console.is_terminal:
            yield
            return
        with Live(
            console=self.console,
            get_renderable=lambda: parts_table(cluster.layout, cluster.progress),
            refresh_per_second=_REFRESHES_A_SECOND,
        ):
            yield

    def parts(self, cluster: Cluster) -> None:
        """List the parts as they stand, where no live table has shown them."""
        if not self.console.is_terminal:
            for name, where in part_addresses(cluster.layout, web=cluster.web).items():
                self.say(f"{name:<10} {where:<16} {cluster.progress.get(name, '')}")

    def failover(self, failover: Failover) -> None:
        steps = "  ".join(
            f"{phase.replace('_', ' ')} [bold]{_milliseconds(seconds)}[/]"
            for phase, seconds in failover.phases.items()
        )
        self.say(f"{failover.old} -> {failover.new}: {steps}")
        self.say(
            f"failover took [bold]{failover.failover_seconds:.3f} s[/], the client's longest call "
            f"[bold]{failover.client_longest_call_seconds:.3f} s[/], "
            f"epoch {failover.epoch_before} -> {failover.epoch_after}"
        )

    def summary(self, title: str, rows: Iterable[tuple[str, str]], *, well: bool) -> None:
        table = Table.grid(padding=(0, 2))
        for name, value in rows:
            table.add_row(name, f"[bold]{value}[/]")
        self.console.print()
        colour = "green" if well else "red"
        self.console.print(Panel(table, title=title, border_style=colour, expand=False))


def part_addresses(layout: Layout, *, web: bool = False) -> dict[str, str]:
    """Return each part's main address, in the order of the start; ``web``: also the page's."""
    addresses = {"zookeeper": f"{HOST}:{layout.zookeeper}"}
    for name, journal in layout.journalnodes.items():
        addresses[name] = f"{HOST}:{journal.rpc}"
    for name, ports in layout.namenodes.items():
        addresses[name] = f"{HOST}:{ports.rpc}"
    for name, datanode in layout.datanodes.items():
        addresses[name] = f"{HOST}:{datanode.transfer}"
    for name, ports in layout.namenodes.items():
        addresses[f"zkfc-{name}"] = f"{HOST}:{ports.zkfc_rpc}"
    if web:
        addresses["web"] = f"{HOST}:{layout.web}"
    return addresses


def parts_table(layout: Layout, progress: Mapping[str, str]) -> Table:
    """Return a table of the parts, where they listen, and what is known of them."""
    table = Table(title=f"cluster in {layout.directory}", title_justify="left")
    for heading in ("part", "address", "state"):
        table.add_column(heading)
    for name, where in part_addresses(layout, web="web" in progress).items():
        state = progress.get(name, "waiting")
        style = _STYLES.get(state, "green")
        table.add_row(name, where, f"[{style}]{state}[/]")
    return table


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.0f} ms"
