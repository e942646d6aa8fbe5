"""Honest candidates are accepted beside a load of four times the cores: what they consume is limited, not the wall.

The whole corpus: `FORGE_TEST_LONG=1 python -m pytest -n0 -s tests/honest/test_under_load.py`.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.honest import test_honest

LOAD = 4
"""Programs that want a processor all the time, for each processor."""
AT_ONCE = 2
"""Number of candidates that are examined at the same time."""
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


def accepted(path: Path) -> None:
    try:
        test_honest.accepted(test_honest.described_job(path))
    except BaseException as failure:
        failure.add_note(f"the candidate is {path.stem}")
        raise


@pytest.mark.slow
@pytest.mark.usefixtures("walls")
def test_honest_candidates_are_accepted_beside_a_load() -> None:
    """Two candidates share the load's time: it takes every processor for as long as the slower one needs."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in pool.map(accepted, TRIED):
            pass
