"""Runs beside hostile code.

Runs the candidate's own test_correctness.py and bench.py; their results are only claims.
"""

import importlib
import os
import sys
from pathlib import Path

from . import load


def run_tests() -> None:
    """Run the author's tests with pytest and end with its status."""
    import pytest

    directory = _prepare()
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # other installed packages are no part of the test
    options = ("-q", "-p", "no:cacheprovider", "--rootdir", str(directory))
    sys.exit(pytest.main([*options, str(directory / "test_correctness.py")]))


def run_benchmark() -> None:
    """Run the author's benchmark as a script."""
    directory = _prepare()
    sys.path.insert(0, str(directory))
    load.load_module(str(directory / "bench.py"), "__main__")


def _prepare() -> Path:
    """Let a candidate load its built files; return the folder of its files."""
    directory = Path(__file__).parents[1] / "candidate"
    language = importlib.import_module(".language", __package__)
    language.prepare({"candidate_directory": str(directory)})
    return directory
