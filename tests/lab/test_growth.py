"""Reading a candidate's sources takes work in proportion to their length, whatever they say: counted, not timed."""

import io
import itertools
import sys
import tokenize
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from forge.domain import long_tokens
from forge.domain.candidate import Metadata
from forge.lab.finding import Failed, Passed
from forge.lab.sources.screen import ScreenedSources, examine_sources
from forge.lab.triage import library
from forge.languages import find_language
from tests.steps import MOST_GROWTH, calls

SIZE = 400
ENTRY = "\nload_inline()\ndef f(x): return x\n"
KERNEL = "import triton\n@triton.jit\ndef k(): pass\n"

Source = Callable[[int], str]
STEPS: dict[str, Source] = {
    "star imports": lambda n: (
        "".join(f"from m{i} import *\n" for i in range(n)) + "".join(f"x{i}\n" for i in range(n))
    ),
    "star imports that mean something": lambda n: (
        "".join(f"from torch.nn.m{i} import *\n" for i in range(n)) + "".join(f"x{i}\n" for i in range(n))
    ),
    "aliases": lambda n: "a0 = b\n" + "".join(f"a{i + 1} = a{i}\n" for i in range(n)),
    "doubled strings": lambda n: (
        "a0 = ''\n" + "".join(f"a{i + 1} = a{i} + a{i}\ngetattr(x, a{i})\n" for i in range(n))
    ),
    "one string, joined often": lambda n: (
        f"a = ''.join([{', '.join(repr('') for _ in range(n))}])\n" + "getattr(x, a)\n" * n
    ),
    "a path of many parts": lambda n: (
        f"import ctypes\np = [{', '.join(repr('x') for _ in range(n))}]\n" + "ctypes.CDLL(p)\n" * n
    ),
    "one statement that binds many": lambda n: (
        KERNEL + " = ".join(f"a{i}" for i in range(n)) + " = (" + ", ".join(f"b{i}" for i in range(n)) + ")\n"
    ),
    "decorators": lambda n: "@d\n" * n,
}


def screened(source: str, language: str) -> ScreenedSources:
    metadata = Metadata.model_validate({"name": "a", "op": "rmsnorm", "language": language})
    return examine_sources(
        source + ENTRY, metadata=metadata, language=find_language(metadata.language), entry_point="f"
    )


@pytest.mark.parametrize("language", ["torch", "triton", "cpp"])
@pytest.mark.parametrize("source", STEPS.values(), ids=STEPS)
def test_twice_the_source_takes_twice_the_steps(source: Source, language: str) -> None:
    screened(source(1), language)
    once, twice = (calls(lambda size=size: screened(source(size), language)) for size in (SIZE, 2 * SIZE))
    assert twice <= MOST_GROWTH * once


def fields(size: int) -> str:
    return "x = f'" + "{a}" * size + "'\n"


def marks(size: int) -> str:
    return "a" + "\u0301\u0316" * (size // 2) + "\u0301" * (size % 2) + " = 0\n"


@pytest.mark.parametrize(
    ("source", "most", "said"),
    [(fields, long_tokens.MOST_FIELDS, "an f-string with"), (marks, long_tokens.MOST_SIGNS, "signs beyond ASCII")],
    ids=["fields of an f-string", "marks of a name"],
)
def test_what_the_parser_takes_the_square_of_is_refused_before(source: Source, most: int, said: str) -> None:
    first = "s = 'it''s'  # '\n"
    finding = screened(first + source(most + 1), "torch").finding
    assert isinstance(finding, Failed)
    assert said in finding.reason.message
    assert "line 2" in finding.reason.message
    assert isinstance(screened(first + source(most), "torch").finding, Passed)
    assert isinstance(screened(f'{first}s = """{source(most + 1)}"""\n', "torch").finding, Passed)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there, an f-string is many tokens")
def test_strings_are_found_where_python_finds_them() -> None:
    for path in sorted((Path(long_tokens.__file__).parents[1] / "lab").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        starts = [0, *itertools.accumulate(len(line) for line in text.splitlines(keepends=True))]
        read = tokenize.generate_tokens(io.StringIO(text).readline)
        ends = {
            starts[one.end[0] - 1] + one.end[1] for one in read if one.type in (tokenize.STRING, tokenize.COMMENT)
        }
        assert {found.end() for found in long_tokens._QUOTED.finditer(text)} == ends, path


def test_values_that_many_names_share_are_kept_once() -> None:
    def peak(size: int) -> int:
        names = " = ".join(f"a{i}" for i in range(size))
        body = f"def g(x):\n k[1](x)\n {names} = ({', '.join(f'b{i}' for i in range(size))})\n return a1\n"
        tracemalloc.start()
        try:
            screened(KERNEL + body, "triton")
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1)
    assert peak(2 * SIZE) <= MOST_GROWTH * peak(SIZE)


def test_a_long_chain_of_aliases_hides_nothing() -> None:
    chain = "import os\na0 = os\n" + "".join(f"a{i + 1} = a{i}\n" for i in range(SIZE))
    found = screened(f"{chain}a{SIZE}.fork()\n", "torch").findings
    assert any(one.kind == "processes" and one.line == SIZE + 3 for one in found)


def test_a_path_that_is_read_in_part_is_not_the_built_library() -> None:
    beside = "import ctypes, os\np = os.path.join(os.path.dirname(__file__), 'libkernel.so')\n"
    assert not any(one.kind == "foreign_code" for one in screened(f"{beside}ctypes.CDLL(p)\n", "cpp").findings)
    long = f"ctypes.CDLL([p, {', '.join(['p'] * library.PATH_NODES)}][0])\n"
    assert any(one.kind == "foreign_code" for one in screened(beside + long, "cpp").findings)
