"""``./run soak image``: the image is built and looked into, and its cluster loses NameNodes.

The compose file is started by podman-compose as it is; only ZooKeeper's image is made here, as
there is no hub.  A Java client on this machine writes while the active's process is killed and the
restart policy brings it back; then everything acknowledged is looked for, as in the demo.  It needs
root, podman, buildah and mmdebstrap.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

from deploy.local.cluster.errors import LocalClusterError
from deploy.local.cluster.places import fresh_directory
from deploy.local.cluster.signals import orderly_end
from tests.campaigns.soak.image_cluster import ComposedCluster, WentWrong
from tests.campaigns.soak.image_rounds import play
from tests.package.__main__ import PackageFailed
from tests.package.image import build, debootstrap, layers, made_base
from tests.package.podman import drop_storage, podman, use_own_storage

MOST_BYTES: Final = 280_000_000
COMPOSE: Final = "podman-compose==1.6.0"
_UNWANTED: Final = ("pip", "gcc", "cc", "make", "curl", "wget")
_LOOK: Final = (
    "import importlib.util, json, os, pathlib, shutil; "
    "home = [str(p) for p in pathlib.Path('/').glob('*/.*history')]; "
    "print(json.dumps({'user': os.getuid(), 'history': home, "
    "'pip': importlib.util.find_spec('pip') is not None, "
    f"'tools': [one for one in {_UNWANTED!r} if shutil.which(one)], "
    "'writable': os.access('/usr', os.W_OK) or os.access('/etc', os.W_OK)}))"
)


@click.command()
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="Kills.")
@click.option("--again", is_flag=True, help="Make the base twice, too, and compare.")
@click.option("--directory", type=click.Path(path_type=Path, file_okay=False))
@click.option("--json", "as_object", is_flag=True, help="One JSON object as stdout's last line.")
def main(*, rounds: int, again: bool, directory: Path | None, as_object: bool) -> None:
    """Build the image twice, look into it, start the compose file, and kill in it."""
    folder = directory or fresh_directory("image")
    storage = Path(tempfile.mkdtemp(prefix="nnha-"))
    try:
        use_own_storage(storage)
        with orderly_end():
            found = {**image_facts(again=again), **cluster_facts(folder, rounds)}
    except (WentWrong, LocalClusterError, PackageFailed, OSError) as failure:
        raise click.ClickException(str(failure)) from failure
    except subprocess.CalledProcessError as failure:
        raise click.ClickException(f"{failure}: {failure.stderr}") from failure
    finally:
        drop_storage(storage)
    for name, value in found.items():
        click.echo(f"{name}: {value}", err=as_object)
    if as_object:
        click.echo(json.dumps(found))
    sys.exit(0 if found["well"] else 1)


def image_facts(*, again: bool) -> Mapping[str, object]:
    """Build twice; raises WentWrong where the two differ, or hold what they should not."""
    base = made_base()
    if again:
        _same_base(base)
    image, other = build(base, "localhost/nnha"), build(base, "localhost/nnha-again")
    if layers(image) != layers(other):
        raise WentWrong(f"two builds differ: {layers(image)} and {layers(other)}")
    size = int(podman("image", "inspect", "--format", "{{.Size}}", image))
    if size > MOST_BYTES:
        raise WentWrong(f"the image has {size:,} bytes, and should have at most {MOST_BYTES:,}")
    looked = json.loads(
        podman(
            *("run", "--rm", "--read-only", "--cap-drop=ALL", "--network=none"),
            *("--entrypoint", "/usr/bin/python3", image, "-c", _LOOK),
        )
    )
    expected = {"user": 10001, "history": [], "pip": False, "tools": [], "writable": False}
    if looked != expected:
        raise WentWrong(f"in the image: {looked}; expected: {expected}")
    return {"image": image, "bytes": size, "layers": layers(image)}


def _same_base(base: str) -> None:
    tar = fresh_directory("image-base") / "base.tar"
    debootstrap(tar)
    podman("import", "-q", str(tar), f"{base}-again")
    if layers(base) != layers(f"{base}-again"):
        raise WentWrong(f"two bases differ: {layers(base)} and {layers(f'{base}-again')}")


def cluster_facts(folder: Path, rounds: int) -> Mapping[str, object]:
    """Start the compose file, kill, hand over, and look for what was acknowledged."""
    tools = folder / "tools"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--target", str(tools), COMPOSE],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    with ComposedCluster(folder, tools) as cluster:
        return play(cluster, rounds)
