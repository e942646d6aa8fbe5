"""Temporary folders of killed processes go; those of living ones, of others, and of other names stay."""

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from forge.sandbox import folders
from forge.sandbox.folders import HeldFolder

HOLD = """
import sys
from forge.sandbox.folders import HeldFolder
held = HeldFolder("forge-stage-")
(held.path / "file").write_text("x")
print(held.path, flush=True)
sys.stdin.read()
"""

BASELINE = """
import sys
from forge.lab.baselines import cache_folder
print(cache_folder("").parent, flush=True)
sys.stdin.read()
"""
GUEST = """
import pathlib, sys, tempfile
from forge.sandbox.launch import Confinement, Limits, start
waits = (sys.executable, "-c", "import time; time.sleep(60)")
guest = start(
    Confinement(argv=waits, binds=(), masked=(), environment={}, descriptors=(), limits=Limits(), devices=()),
    isolation="none",
)
print(next(pathlib.Path(tempfile.gettempdir()).glob("forge-guest-*")), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(folders, "UNHELD_S", 0.0)
    return tmp_path


def holder(program: str = HOLD) -> tuple[subprocess.Popen[str], Path]:
    running = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    return running, Path(running.stdout.readline().strip())


def test_the_folder_of_a_killed_process_is_removed_by_the_next(temporary: Path) -> None:
    (other, elsewhere) = temporary / "forge-other-x", temporary / "elsewhere"
    for folder in (other, elsewhere):
        folder.mkdir()
    (elsewhere / "kept").touch()
    (temporary / "forge-stage-link").symlink_to(elsewhere)
    dead, left = holder()
    living, held = holder()
    with dead, living:
        assert left.parent == temporary
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        assert left.exists()
        own = HeldFolder("forge-stage-")
        assert not left.exists()
        assert (held / "file").exists()
        assert other.exists()
        assert (elsewhere / "kept").exists()
        own.remove()
        assert not own.path.exists()
        living.kill()


@pytest.mark.parametrize(("program", "prefix"), [(BASELINE, "forge-baseline-"), (GUEST, "forge-guest-")])
def test_so_are_those_of_baselines_and_of_guests_without_walls(temporary: Path, program: str, prefix: str) -> None:
    dead, left = holder(program)
    with dead:
        assert left.parent == temporary
        HeldFolder(prefix).remove()
        assert left.exists()
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        HeldFolder(prefix).remove()
        assert not left.exists()


def test_a_folder_that_was_just_made_is_left_alone(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "UNHELD_S", 60.0)
    made = Path(tempfile.mkdtemp(prefix="forge-stage-"))
    HeldFolder("forge-stage-").remove()
    assert made.exists()
