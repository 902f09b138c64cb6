"""Generated code is committed; it must be what the .proto files next to it say."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

PROTOS = sorted(
    path.relative_to(ROOT)
    for package in ("ha", "journal", "namenode_sim", "hadoop")
    for path in (ROOT / package).rglob("*.proto")
)


@pytest.mark.parametrize("proto", PROTOS, ids=str)
def test_generated_code_is_fresh(proto: Path, tmp_path: Path) -> None:
    outputs = [f"--python_out={tmp_path}"]
    if (ROOT / proto).with_name(f"{proto.stem}_pb2_grpc.py").exists():
        outputs.append(f"--grpc_python_out={tmp_path}")
    made = subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", "-I", ".", *outputs, str(proto)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    fresh = sorted(tmp_path.rglob("*_pb2*.py"))
    assert fresh, f"{proto} gave no code"
    for path in fresh:
        committed = ROOT / path.relative_to(tmp_path)
        assert committed.read_text() == path.read_text(), f"{committed} is stale; generate it again"


def test_there_are_protos() -> None:
    assert Path("journal/proto/journal.proto") in PROTOS
