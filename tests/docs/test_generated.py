"""docs/reference/ is what docs/generate.py makes of the code, and always the same."""

import os
import subprocess
import sys

import pytest

from tests.docs.markdown import ROOT


def generate(*arguments, seed="0"):
    environment = {**os.environ, "PYTHONHASHSEED": seed, "COLUMNS": "40", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "docs/generate.py", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("seed", ["0", "1"])
def test_the_reference_is_not_stale(seed):
    ended = generate("--check", seed=seed)
    assert ended.stderr == ""
    assert ended.returncode == 0


def test_a_stale_page_is_named_and_refused(tmp_path):
    script = (
        "import sys; from pathlib import Path; sys.argv = ['generate.py', '--check'];"
        "sys.path.insert(0, 'docs'); import generate;"
        "generate.pages = lambda: {'cli.md': generate._page('Commands', generate._commands())};"
        f"generate.FOLDER = Path({str(tmp_path)!r}); sys.exit(generate.main())"
    )
    command = [sys.executable, "-c", script]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "stale: docs/reference/cli.md; run: make docs" in ended.stderr
    assert list(tmp_path.iterdir()) == []
