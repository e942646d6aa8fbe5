"""A kernel is checked again when it is saved, by a real process that an interruption ends."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.cli.asking import ask

HEAD = "import torch\n\n\ndef rmsnorm(x, weight, eps):\n"
WRONG = HEAD + "    return x * weight\n"
RIGHT = HEAD + "    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight\n"
LOOKING = "waiting for a save"


@pytest.fixture
def watching(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "kernel.py").write_text(WRONG)
    shape = ["--op", "rmsnorm", "--shape", "batch=4,hidden_size=64"]
    with subprocess.Popen(
        [sys.executable, "-m", "forge", "watch", tmp_path / "kernel.py", *shape, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as running:
        yield running
        running.kill()


def line(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline()


def verdict(running: subprocess.Popen[str]) -> str:
    """The verdict of the next document, after which the process waits again."""
    found = str(json.loads(line(running.stdout))["verdict"])
    while LOOKING not in line(running.stderr):
        assert running.poll() is None
    return found


def test_each_save_is_checked_once_and_an_interruption_ends_it(
    watching: subprocess.Popen[str], tmp_path: Path
) -> None:
    kernel, beside = tmp_path / "kernel.py", tmp_path / "beside.py"
    assert verdict(watching) == "rejected"
    kernel.unlink()  # as an editor does that puts another file in its place
    beside.write_text(RIGHT)
    os.replace(beside, kernel)
    assert verdict(watching) == "accepted"
    kernel.write_text(RIGHT)  # the same bytes are no other version
    os.utime(kernel)
    kernel.write_text("import torch\n\n\ndef another_name(x):\n    return x\n\n\ndef third(x):\n    return x\n")
    assert json.loads(line(watching.stdout))["error"]["code"] == "USAGE"
    kernel.write_text(WRONG)
    assert json.loads(line(watching.stdout))["verdict"] == "rejected"
    watching.send_signal(signal.SIGINT)
    rest, said = watching.communicate(timeout=60)
    assert (watching.returncode, rest) == (0, "")
    assert "Traceback" not in said


def test_bad_input_ends_it_as_it_ends_a_check(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(RIGHT)
    missing = ask("watch", tmp_path / "kernel.py")
    assert (missing.status, "expected REFERENCE.py KERNEL.py" in missing.error) == (2, True)
    assert ask("watch", tmp_path / "kernel.py", "--op", "rmsnom").status == 2
    assert ask("watch", tmp_path / "nothing.py", "--op", "rmsnorm").status == 2
