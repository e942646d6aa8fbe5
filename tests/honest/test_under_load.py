"""Honest candidates are accepted beside a load of four times the cores: what they consume is limited, not the wall.

The whole corpus: `FORGE_TEST_LONG=1 python -m pytest -n0 -s tests/honest/test_under_load.py`.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.honest import test_honest

LOAD = 4
"""Programs that want a processor all the time, for each processor."""
LONG = os.environ.get("FORGE_TEST_LONG") == "1"
TRIED = [path for path in test_honest.CANDIDATES if LONG or path.stem in test_honest.BESIDE_A_LOAD]
"""In the default run one candidate of torch's operators, and one in the interpreter, which is the slowest."""


@pytest.fixture(scope="module", autouse=True)
def loaded() -> Iterator[None]:
    program = [sys.executable, "-I", "-S", "-c", "while True: pass"]
    running = [subprocess.Popen(program) for _ in range(LOAD * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


@pytest.mark.slow
@pytest.mark.usefixtures("walls")
@pytest.mark.parametrize("path", TRIED, ids=lambda path: path.stem)
def test_an_honest_candidate_is_accepted_beside_a_load(path: Path) -> None:
    test_honest.test_an_honest_variant_is_accepted(path)
