"""The same attacks, started by a user who isn't root: other identities, and no cgroup where none was delegated."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import confined
import pytest

FILES = ("test_damage.py", "test_freeze.py", "test_launch.py", "test_enter.py", "test_memory.py")


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_the_walls_hold_for_an_ordinary_user() -> None:
    here = Path(__file__).parent
    python = (sys.executable, "-c", confined.AS_USER, sys.executable, "-B", "-m", "pytest")
    if subprocess.run([*python, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("the checkout or its interpreter can't be read by another user")
    with tempfile.TemporaryDirectory() as home:  # not tmp_path: others can't enter its parents
        os.chown(home, confined.USER, confined.USER)
        done = subprocess.run(
            [
                *(*python, "-q", "-x", "-p", "no:cacheprovider", "-n0", "-k", "not torch"),
                *("--basetemp", f"{home}/pytest", *(str(here / name) for name in FILES)),
            ],
            cwd=here.parents[1],
            env={**os.environ, "HOME": home, "TMPDIR": home},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
