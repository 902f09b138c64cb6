"""``nnha backup``: create, list, verify and restore backups of a cluster."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

import click

from ha.conf.configuration import Configuration, load_configuration
from ha.conf.errors import ConfigurationError
from ha.conf.keys.cluster import ZOOKEEPER_QUORUM
from ha.conf.keys.security import SECURITY_MODE
from ha.console.exit_codes import FAILED, REFUSED, UNHEALTHY, UNREACHABLE, USAGE
from ha.console.options import configuration, confirmed
from ha.console.own_certificate import call_under_certificate
from ha.daemon import event_loop
from ha.daemon.exposure import certificates
from ha.daemon.logs import configure_logging
from ha.daemon.private_files import private_files
from ha.daemon.process import ExitWith
from ha.elector.zookeeper.errors import ZooKeeperRefused, ZooKeeperUnavailable
from ha.elector.zookeeper.settings import zookeeper_settings
from ha.security.caller import Role
from ha.security.own_tls import act_as
from hadoop.durable import write_durably
from hadoop.errors import StorageError
from journal.errors import JournalError
from namenode_sim.edits.errors import EditsError
from namenode_sim.image.errors import ImageError
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.startup.identity import NameNodeIdentity
from namenode_sim.startup.questions import Consent
from spark.backup.create import gather, pack_authority, seal, verify
from spark.backup.folder import existing, publish, room_in, why_not_whole
from spark.backup.model import ZNODES, BackupError, Manifest
from spark.backup.restore import restore_authority, restore_namespace
from spark.backup.znodes import read_znodes, restore_znodes
from spark.ends.sources.cluster import Cluster
from spark.ends.sources.model import SourceError

PARTS: Final = ("namespace", "znodes", "authority")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def backup() -> None:
    """Back up a cluster's metadata, and restore it (docs/disasters.md).

    A backup is one directory: the newest image, every durable edit behind it, the znodes, and the
    certificate authority if asked for.  The blocks of files are not in it.
    """
    configure_logging("backup", level="warning")


_place = click.option(
    "--dir",
    "where",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder of backups.",
)


@backup.command()
@_place
@configuration
@click.option(
    "--authority",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Also the folder of the certificate authority, with its secret key.",
)
@click.option("--no-znodes", is_flag=True, help="Leave out what is in ZooKeeper.")
def create(
    *,
    where: Path,
    conf_dir: Path | None,
    overrides: tuple[str, ...],
    authority: Path | None,
    no_znodes: bool,
) -> None:
    """Make a backup of the running cluster, check it, and print its name.

    Exit status: 0 done, 2 wrong usage, 4 it could not be made, 6 a server did not answer.  It has
    its name only when all of it is on the disk; before, and after a failure, there is none.
    """
    with _ending("no backup was made"):
        conf = load_configuration(conf_dir, overrides)
        call_under_certificate(conf, Role.CHECKPOINTER, Role.ADMIN)
        cluster = Cluster.from_configuration(conf)
        with private_files(), room_in(where) as room:
            event_loop.run(gather(cluster, room))
            if not no_znodes and conf.get(ZOOKEEPER_QUORUM, nameservice=cluster.nameservice):
                settings = zookeeper_settings(conf, nameservice=cluster.nameservice)
                write_durably(room / ZNODES, event_loop.run(read_znodes(settings)))
            if authority is not None:
                pack_authority(authority, room)
            name, manifest = seal(room, cluster.nameservice)
            at = publish(room, name)
    click.echo(f"{at}: {_describe(manifest)}")


@backup.command("list")
@_place
def list_command(*, where: Path) -> None:
    """List backups, oldest first, by what their manifests say; verify reads all of them.

    Exit status: 0 all are whole, 2 wrong usage, 4 the directory cannot be read, 8 one is not whole.
    """
    broken = False
    with _ending("nothing was changed"):
        for path in sorted(one for one in where.iterdir() if one.is_dir()):
            manifest, why = why_not_whole(path)
            broken |= bool(why)
            shown = "" if manifest is None else f"{_describe(manifest)}, "
            click.echo(f"{path.name}: {shown}{f'NOT WHOLE: {why}' if why else 'whole'}")
    if broken:
        raise click.exceptions.Exit(UNHEALTHY)


@backup.command("verify")
@_place
@click.argument("name")
def verify_command(*, where: Path, name: str) -> None:
    """Compare all digests of a backup, and replay its image and edits in memory.

    Exit status: 0 sound, 2 wrong usage, 4 it cannot be read, 8 it is damaged.
    """
    with _ending("nothing was changed", damaged=UNHEALTHY):
        manifest, namespace = verify(existing(where, name))
        inodes = len(namespace.tree.inodes)
    click.echo(f"{name} is sound: {_describe(manifest)}, {inodes} inodes after its last edit")


@backup.command()
@_place
@configuration
@click.argument("name")
@click.option(
    "--part",
    type=click.Choice(PARTS),
    default="namespace",
    show_default=True,
    help="namespace: this NameNode's directories and the journal; znodes: what is missing in "
    "ZooKeeper; authority: the certificate authority, into --authority.",
)
@click.option("--authority", type=click.Path(path_type=Path, file_okay=False), help="Where to.")
@click.option(
    "--keep-journal",
    is_flag=True,
    help="Restore the image only: the journal still has the edits behind it.",
)
@click.option("--force", "-force", is_flag=True, help="Erase what is there, without a question.")
def restore(
    *,
    where: Path,
    conf_dir: Path | None,
    overrides: tuple[str, ...],
    name: str,
    part: str,
    authority: Path | None,
    keep_journal: bool,
    force: bool,
) -> None:
    """Restore one part of a backup, which is verified first.

    Run it on a NameNode's host, with all NameNodes stopped and all JournalNodes running.  Edits
    that were made after the backup are lost.

    Exit status: 0 done, 2 wrong usage, 3 refused and nothing changed, 4 failed as it says, 6 a
    server did not answer, 8 the backup is damaged and nothing was changed.
    """
    if (part == "authority") != (authority is not None):
        raise click.UsageError("--part authority and --authority DIR go together")
    consent = Consent(force=force, ask=confirmed)
    with _ending("nothing was restored", damaged=UNHEALTHY), private_files():
        folder = existing(where, name)
        manifest, namespace = verify(folder)
        if authority is not None:
            restore_authority(folder, authority)
            said = f"the authority is in {authority}"
        else:
            conf = load_configuration(conf_dir, overrides)
            if part == "znodes":
                said = _znodes(conf, folder, manifest)
            else:
                act_as(certificates(conf, Role.NAMENODE), conf.get(SECURITY_MODE))
                said = _namespace(
                    conf, consent, folder, manifest, namespace, keep_journal=keep_journal
                )
    click.echo(f"restored from {name}: {said}")


def _znodes(conf: Configuration, folder: Path, manifest: Manifest) -> str:
    if not (folder / ZNODES).is_file():
        raise BackupError("this backup holds no znodes")
    settings = zookeeper_settings(conf, nameservice=manifest.nameservice)
    made, left = event_loop.run(restore_znodes(settings, (folder / ZNODES).read_bytes()))
    return f"{len(made)} znodes made ({', '.join(made)}), {len(left)} that exist left as they are"


def _namespace(
    conf: Configuration,
    consent: Consent,
    folder: Path,
    manifest: Manifest,
    namespace: Namespace,
    *,
    keep_journal: bool,
) -> str:
    place = NameNodeIdentity.from_configuration(conf)
    event_loop.run(
        restore_namespace(
            conf, place, consent, folder, manifest, namespace, keep_journal=keep_journal
        )
    )
    name, journal = place.address.namenode, place.journal.journal_id
    state = (
        f"{name} holds the image of transaction {manifest.image_txid}; the journal {journal} has "
        "what follows, and no edit is lost"
        if keep_journal
        else f"{name} and the journal {journal} hold all up to transaction {manifest.last_txid}; "
        "edits behind it are lost"
    )
    return f"{state}. → start it, then nnha namenode --bootstrap-standby --force on the others"


@contextmanager
def _ending(state: str, *, damaged: int = FAILED) -> Iterator[None]:
    """End the command with a message and a code for all that can go wrong."""
    try:
        yield
    except ExitWith as refusal:
        raise _failure(refusal.message, refusal.code) from refusal
    except ConfigurationError as problem:
        raise _failure(str(problem), USAGE) from problem
    except (ZooKeeperUnavailable, TimeoutError, SourceError) as problem:
        raise _failure(f"{problem}; {state}", UNREACHABLE) from problem
    except (StorageError, ZooKeeperRefused) as problem:
        raise _failure(f"{problem} {state}", REFUSED) from problem
    except (BackupError, EditsError, ImageError, JournalError) as problem:
        raise _failure(f"{problem}; {state}", damaged) from problem
    except OSError as problem:
        raise _failure(f"{problem}; {state}", FAILED) from problem


def _failure(message: str, code: int) -> click.exceptions.Exit:
    click.echo(f"backup: {message}", err=True)
    return click.exceptions.Exit(code)


def _describe(manifest: Manifest) -> str:
    size = sum(file.size for file in manifest.files.values())
    age = timedelta(seconds=max(0, round(time.time() - manifest.made_at)))
    return (
        f"image of transaction {manifest.image_txid}, edits up to {manifest.last_txid}, "
        f"{size} bytes, {age} old, cluster {manifest.cluster_id}"
    )
