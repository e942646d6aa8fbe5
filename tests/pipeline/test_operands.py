import pytest

from forge.errors import UnknownName, UsageError
from forge.pipeline.operands import parse_operands, require_arguments

ROWS = b"import torch\n\n\ndef rows(table, index, scale=1.0):\n    return table[index] * scale\n"
MODEL = b"class Model:\n    def forward(self, x, y):\n        return x + y\n"


def test_operands_are_read_with_their_sizes_and_ranges() -> None:
    x, index = parse_operands(["x=fp32[16,64]", "index=int64[16]:-1..99"])
    assert (x.name, x.dtype, x.sizes, x.low) == ("x", "float32", (16, 64), None)
    assert (index.dtype, index.sizes, index.low, index.high) == ("int64", (16,), -1, 99)


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "x=", "x=fp32", "x=fp32[]", "x=fp32[0]", "x=fp32[4", "x=fp9[4]", "1x=fp32[4]", "x=fp32[4,-1]"),
        *("x=fp32[4]:0..9", "i=int64[4]", "i=int64[4]:9..0", "i=int64[4]:0", "i=int64[4]:a..b", "x=fp32[٤]"),
        f"x=fp32[{','.join('1' * 9)}]",
        "x=fp32[99999999999]",
    ],
)
def test_an_operand_that_says_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="bad operand"):
        parse_operands([text])


def test_an_operand_that_is_declared_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="'x' is declared twice"):
        parse_operands(["x=fp32[4]", "y=fp32[4]", "x=fp32[8]"])


def _hold(source: bytes, *names: str, function: str = "") -> None:
    require_arguments(parse_operands([f"{name}=fp32[4]" for name in names]), source, function=function)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (ROWS, ()),
        (ROWS, ("table", "index")),
        (ROWS, ("table", "index", "scale")),
        (MODEL, ("x", "y")),
        (b"def f(x, /, *more): ...", ("x", "anything", "else_")),
        ("def f(größe): ...".encode(), ("input_0",)),
        (b"def f(x): ...\ndef g(y): ...", ("whatever",)),  # the sandbox says that it needs --function
        (b"f = make()", ("whatever",)),
        (b"def f(:", ("whatever",)),
        (b"def f(x): ...\ndef get_inputs(): ...\ndef _inner(z): ...", ("x",)),
    ],
)
def test_operands_that_fit_the_function_pass(source: bytes, names: tuple[str, ...]) -> None:
    _hold(source, *names)


@pytest.mark.parametrize(
    ("source", "names", "says"),
    [
        (ROWS, ("index", "table"), r"index, table aren't in the order of rows\(\).*table, index, in this order"),
        (MODEL, ("y", "x"), r"aren't in the order of forward\(\)"),
        (ROWS, ("table",), r"rows\(\) has no operand for 'index'"),
        (ROWS, ("table", "scale"), r"rows\(\) has no operand for 'index'"),
    ],
)
def test_operands_that_do_not_fit_the_function_are_refused(source: bytes, names: tuple[str, ...], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        _hold(source, *names)


@pytest.mark.parametrize("names", [("table", "idx"), ("table", "index", "scale", "more")])
def test_an_operand_that_is_no_argument_is_an_unknown_name(names: tuple[str, ...]) -> None:
    with pytest.raises(UnknownName, match=r"unknown operand of rows\(\) '(idx|more)': expected one of index, scale"):
        _hold(ROWS, *names)


def test_the_function_that_is_named_is_the_one_that_is_asked() -> None:
    source = b"def f(x): ...\ndef g(y): ...\nclass Model:\n    def forward(self, z): ...\n"
    _hold(source, "y", function="g")
    _hold(source, "z")
    with pytest.raises(UnknownName, match=r"operand of g\(\) 'x'"):
        _hold(source, "x", function="g")
