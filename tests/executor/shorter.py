"""Run as a program it is Forge's command line on a machine whose series and process pairs are short."""

import sys
from pathlib import Path

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
from forge.__main__ import main
from tests.shortened import shorten_pairs, shorten_series

if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as patched:
        shorten_series(patched)
        shorten_pairs(patched)
        main()
