"""``nnha pause`` and ``nnha resume``: no automatic role change while people work."""

import click

from ha.cli.operate import notice_options
from ha.cli.operate.plan.notice_results import not_automatic
from ha.cli.zookeeper_session import CONNECT_SECONDS
from ha.conf.keys import cluster as keys
from ha.console.cluster_options import ClusterCommand, about_a_cluster
from ha.console.result import Ended


@click.command()
@about_a_cluster("pause", timeout_seconds=CONNECT_SECONDS)
@notice_options.FOR
@notice_options.UNTIL_ENDED
@notice_options.REASON
@notice_options.WAIT
@notice_options.DRY_RUN
def pause(
    *,
    place: ClusterCommand,
    for_seconds: float | None,
    until_ended: bool,
    reason: str | None,
    wait_seconds: float,
    dry_run: bool,
) -> None:
    """Stop automatic failover in the whole nameservice, for a time and with a reason.

    Roles do not change, even if a daemon fails; nnha switchover still works.  The pause ends at its
    time, or with nnha resume.  Exits 0 once all running ZKFCs have seen it, 4 if one has not.
    """
    notice = notice_options.notice_of(
        for_seconds=for_seconds, until_ended=until_ended, reason=reason
    )

    def describe(former: str) -> str:
        instead = f", in place of the one {former}" if former else ""
        return f"automatic failover is paused {notice_options.terms_text(notice)}{instead}"

    _check_automatic(place, "pause")
    notice_options.NoticeChange(
        place=place, command="pause", what="the pause", describe=describe, notice=notice,
        wait_seconds=wait_seconds, dry_run=dry_run,
    ).run()  # fmt: skip


@click.command()
@about_a_cluster("resume", timeout_seconds=CONNECT_SECONDS)
@notice_options.WAIT
@notice_options.DRY_RUN
def resume(*, place: ClusterCommand, wait_seconds: float, dry_run: bool) -> None:
    """End a pause: ZKFCs decide again who is active.

    Exits 0 once all running ZKFCs have seen it, or if there was no pause; 4 if one has not.
    """
    _check_automatic(place, "resume")
    notice_options.NoticeChange(
        place=place, command="resume", what="the end of the pause",
        describe=lambda former: f"automatic failover is on again; the pause was {former}",
        notice=None, wait_seconds=wait_seconds, dry_run=dry_run,
    ).run()  # fmt: skip


def _check_automatic(place: ClusterCommand, command: str) -> None:
    if not place.configuration.get(keys.AUTO_FAILOVER, nameservice=place.nameservice):
        raise Ended(not_automatic(command))
