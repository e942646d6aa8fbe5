"""What the builder makes of C++ leaves the thread that loads it as it was."""

import subprocess
import sys
from pathlib import Path

import pytest

from forge.languages.cpp import guest

SOURCE = 'extern "C" float twice(float x) { return 2 * x; }'
LOADS = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.twice.restype, library.twice.argtypes = ctypes.c_float, [ctypes.c_float]
print(library.twice(1.5), 5e-324 * 1.0 > 0)
"""


@pytest.mark.parametrize("flag", guest.FAST_MATHS)
def test_fast_maths_leaves_subnormal_numbers_as_they_are(flag: str, tmp_path: Path) -> None:
    (built,) = guest.build({"scratch_directory": tmp_path, "source": SOURCE, "flags": [flag, "-std=c++17"]})
    done = subprocess.run([sys.executable, "-c", LOADS, str(built)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3.0", "True"]


ASKS_FOR_AN_EXECUTABLE_STACK = r"""
asm(".pushsection .note.GNU-stack,\"x\",@progbits\n.popsection");
extern "C" float twice(float x) { return 2 * x; }
"""
SHOWS_ITS_STACK = """
import ctypes, sys
ctypes.CDLL(sys.argv[1])
print(*(line.split()[1] for line in open("/proc/self/maps") if line.rstrip().endswith("[stack]")))
"""


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="this system doesn't show mappings")
def test_an_object_that_asks_for_an_executable_stack_gets_none(tmp_path: Path) -> None:
    source = {"scratch_directory": tmp_path, "source": ASKS_FOR_AN_EXECUTABLE_STACK, "flags": ["-std=c++17"]}
    (built,) = guest.build(source)
    done = subprocess.run(
        [sys.executable, "-c", SHOWS_ITS_STACK, str(built)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["rw-p"]


REMEMBERS_ITS_WIDTH = """
inline int& width() { static int kept = WIDTH; return kept; }
extern "C" int scale(int x) { return width() * x; }
extern "C" int scaled_twice(int x) { return scale(scale(x)); }
extern "C" int step = WIDTH;
extern "C" int stepped(int x) { return x + step; }
"""
ASKS_TWO = """
import ctypes, sys
one, two = (ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL) for path in sys.argv[1:])
print(*(library[name](1) for library in (one, two) for name in ("scaled_twice", "stepped")))
"""


@pytest.mark.parametrize("flags", [["-O0"], ["-O3", "-std=c++17"]], ids=["plain", "optimised"])
def test_two_kernels_in_one_process_use_their_own_functions_and_variables(flags: list[str], tmp_path: Path) -> None:
    """Their names are the same, as in two versions by one author, and one of them shows its names to all."""
    built = []
    for width in ("3", "10"):
        scratch = tmp_path / width
        scratch.mkdir()
        source = REMEMBERS_ITS_WIDTH.replace("WIDTH", width)
        built += guest.build({"scratch_directory": scratch, "source": source, "flags": flags})
    done = subprocess.run([sys.executable, "-c", ASKS_TWO, *built], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["9", "4", "100", "11"]
