"""What the host reads beside the gates takes work in proportion to its length, too: counted, or hours otherwise."""

import json
from collections.abc import Callable

import pytest

from forge.authors.model.diagnosis import read_diagnosis
from forge.authors.search.constants import constants_of
from forge.claims.forms import CELL, CELL_INTERVAL
from forge.claims.named import shape
from forge.claims.prose import passages
from forge.contenders.versions import within
from forge.errors import UsageError
from forge.lab.log_excerpt import excerpt
from forge.lab.parts.compose import CannotCompose, PartKernel, composed_kernel
from forge.lab.parts.groups import require_parts
from forge.lab.profile.machine_code import parse
from forge.lab.sources.mending import place_to_mend
from forge.pipeline.called_names import called_names
from forge.pipeline.constants import with_constants
from tests.lab.parts.test_take_apart import SMALL
from tests.steps import MOST_GROWTH, calls

SIZE = 300
LONG = 300_000
"""Characters of a hostile text. Steps that grow with its square would take minutes or hours."""


def _names(size: int) -> str:
    return "".join(f"a{i} = 1\n" for i in range(size))


def _composed(text: str, cpp_source: str | None = None) -> object:
    parts = require_parts(SMALL, [("a", "b"), ("c", "d")])
    return composed_kernel("", SMALL, parts, {0: PartKernel(text, "f", cpp_source)})


def _exported(size: int) -> str:
    body = "".join(f'extern "C" void g{i}(int a) {{}}\n' for i in range(size))
    return f"S = r'''{body}'''\ndef f(x): return x\n"


def _arguments(size: int) -> str:
    names = ", ".join(f"a{i}" for i in range(size))
    return f"def f({names}): return ({names})\n"


@pytest.mark.parametrize(
    "work",
    [
        lambda size: with_constants(_names(size).encode(), ["a0=2"]),
        lambda size: constants_of(_names(size), None),
    ],
    ids=["constants", "tunables"],
)
def test_twice_the_text_takes_twice_the_steps(work: Callable[[int], object]) -> None:
    work(1)
    once, twice = (calls(lambda size=size: work(size)) for size in (SIZE, 2 * SIZE))
    assert twice <= MOST_GROWTH * once


def test_many_constants_of_one_name_are_read_once() -> None:
    described = {"name": "a", "op": "rmsnorm", "language": "cpp", "cpp": {"source": "S"}}
    kernel = b"S = '\\x61'\n" * (LONG // 10)
    found = excerpt(
        "kernel.cpp:1: error: no",
        files={"metadata.json": json.dumps(described).encode(), "kernel.py": kernel},
        withheld=False,
    )
    assert found is not None
    assert found.line == 1


def test_many_functions_and_arguments_are_renamed_at_once() -> None:
    assert _composed(_exported(LONG // 30), "S")
    assert _composed(_arguments(LONG // 10))


@pytest.mark.parametrize("space", ["  \t", "\t"])
def test_a_line_of_white_space_is_read_once(space: str) -> None:
    found = constants_of(f"S = '''\n#define N 1{space * LONG}!\n#define M 2\n'''\n", "S")
    assert list(found) == ["M"]


@pytest.mark.parametrize("begin", ["```{", "```json {", "``` ", "```{}   "])
def test_an_answer_of_many_blocks_is_read_once(begin: str) -> None:
    assert isinstance(read_diagnosis(begin * (LONG // len(begin)), ()), str)


def test_a_long_version_is_read_once() -> None:
    assert not within("9" * LONG + "\n" + "9", ">1")


def test_many_empty_lines_of_a_listing_are_read_once() -> None:
    assert parse("\n" * LONG, "\n" * LONG) == ()


def test_a_declaration_of_much_white_space_is_read_once() -> None:
    text = f"S = r'''extern \"C\"{' ' * LONG}{'a ' * LONG}'''\ndef f(x): return x\n"
    assert _composed(text, "S")


@pytest.mark.parametrize("deep", ["x = " + "+".join("1" * 2500), "x = 0x" + "f" * 5000, "x = a" + ".b" * 2000])
def test_a_kernel_that_cannot_be_written_again_is_named(deep: str) -> None:
    with pytest.raises(CannotCompose, match="expected less nesting"):
        _composed(f"{deep}\ndef f(x): return x\n")


@pytest.mark.parametrize("called", ["a" + ".b()" * 1000, "(0x" + "f" * 5000 + ").load(p)"])
def test_a_hint_is_given_for_calls_of_any_depth(called: str) -> None:
    kernel = f"import triton\n@triton.jit\ndef k(p): {called}\ndef f(x):\n    k[1](x)\n    return x\n"
    assert place_to_mend(kernel.encode(), entry="f", language="triton", code="OUT_OF_BOUNDS") is not None


def test_a_name_of_many_digits_is_read_once() -> None:
    assert called_names(f"L{'0' * LONG}x()\nL{'2' * LONG}()\nConv2d()\n".encode())[-1] == "conv"


@pytest.mark.parametrize("piece", ["<!-- measured: ", "<!--", "<![CDATA[", "<a "])
def test_a_long_piece_of_html_is_refused_before_it_is_searched(piece: str) -> None:
    with pytest.raises(UsageError, match="the passage at line 1 is too long"):
        list(passages("<div>\n" + piece * (LONG // len(piece))))


@pytest.mark.parametrize("cell", ["1 to 2" + " " * LONG + "!", " " * LONG + "!"])
def test_a_cell_of_white_space_is_read_once(cell: str) -> None:
    assert CELL_INTERVAL.fullmatch(cell) is None
    assert (CELL.match(cell) is None) is cell.startswith(" ")


@pytest.mark.parametrize("viewed", ["[0]", ".T", ".view(-1)"])
def test_a_write_to_a_view_of_many_views_is_found(viewed: str) -> None:
    kernel = f"def f(x):\n    x{viewed * 1400}.add_(1)\n    return x\n"
    found = place_to_mend(kernel.encode(), entry="f", language="torch", code="INPUT_MUTATED")
    assert found is not None
    assert found.does == "writes to the input x"


def test_many_arguments_are_looked_for_in_bounded_steps() -> None:
    names = ", ".join(f"a{i}" for i in range(LONG // 10))
    kernel = f"def f({names}):\n    return a0\n"
    found = place_to_mend(kernel.encode(), entry="f", language="cpp", code="INPUT_MUTATED")
    assert found is not None
    assert found.does == "returns the outputs"


@pytest.mark.parametrize("text", ["1x " * LONG, "batch size" + " " * LONG])
def test_a_text_that_nearly_names_a_shape_is_read_once(text: str) -> None:
    found = shape(text, (("batch", 16), ("hidden_size", 4096)), "rmsnorm")
    assert found.missing == ("batch", "hidden_size")
