"""Folders in which nothing can be written, and processes that obey that, root's too."""

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CAP_DAC_OVERRIDE, PR_CAPBSET_DROP = 1, 24


def obey_modes() -> None:
    """Take root's right to write whatever the modes say; whoever isn't root has none."""
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)


@contextmanager
def unwritable(folder: Path) -> Iterator[None]:
    before = sorted(os.listdir(folder))
    folder.chmod(0o555)
    try:
        answer = subprocess.run(["touch", folder / "x"], capture_output=True, check=False, preexec_fn=obey_modes)
        assert answer.returncode != 0, "the folder can be written to"
        yield
    finally:
        folder.chmod(0o755)
    assert sorted(os.listdir(folder)) == before
