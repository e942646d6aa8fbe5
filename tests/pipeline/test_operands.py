import pytest

from forge.errors import UnknownName, UsageError
from forge.pipeline.operands import parse_axes, parse_operands, parse_ranges, require_arguments

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
        *("x=fp32[4]:0..", "i=int64[4]", "i=int64[4]:9..0", "i=int64[4]:0", "i=int64[4]:a..b", "x=fp32[٤]"),
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


def test_a_range_of_floats_and_truth_values_are_declared() -> None:
    x, mask = parse_operands(["x=fp32[4]:-1.5..2e-1", "mask=bool[8,4]"])
    assert (x.low, x.high) == (-1.5, 0.2)
    assert (mask.dtype, mask.low) == ("bool", None)


@pytest.mark.parametrize(
    "text",
    [
        "x=fp32[4]:1..1",
        "x=fp32[4]:1..nan",
        "x=fp32[4]:a..b",
        "q=int8[4]:-129..0",
        "q=uint8[4]:-1..3",
        "m=bool[4]:0..1",
    ],
)
def test_a_range_that_the_type_has_no_numbers_for_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="bad operand"):
        parse_operands([text])


def test_beside_get_inputs_one_operand_may_be_declared_alone() -> None:
    source = b"def pool(hidden, lengths):\n    return hidden\n"
    one = parse_operands(["lengths=int64[16]:0..128"])
    with pytest.raises(UsageError, match="no operand for 'hidden'"):
        require_arguments(one, source, function="")
    require_arguments(one, source + b"def get_inputs():\n    return []\n", function="")
    with pytest.raises(UnknownName, match="lenghts"):
        require_arguments(
            parse_operands(["lenghts=int64[16]:0..128"]), source + b"def get_inputs(): ...\n", function=""
        )


def test_axes_and_ranges_of_sizes_are_parsed() -> None:
    (batch, seq) = parse_axes(["batch=index.0", "seq=x.1,mask.1"])
    assert (batch.name, batch.places) == ("batch", (("index", 0),))
    assert seq.places == (("x", 1), ("mask", 1))
    (width,) = parse_ranges(["hidden.1=1..8192"])
    assert (width.place, width.low, width.high) == (("hidden", 1), 1, 8192)


@pytest.mark.parametrize(
    "text", ["batch", "batch=index", "batch=index.8", "Batch=x.0", "seq=x.0,", "seq=.0", "s=x.0;y.1"]
)
def test_a_bad_axis_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"expected name=OPERAND\.SIZE"):
        parse_axes([text])


@pytest.mark.parametrize(
    "text", ["x.1", "x=1..2", "x.1=2..1", "x.1=0..4", "x.1=1..", "x.1=1..1", "x.1=1..99999999999"]
)
def test_a_bad_range_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"expected OPERAND\.SIZE=LOW\.\.HIGH"):
        parse_ranges([text])


def test_what_is_declared_twice_is_refused() -> None:
    for texts in (["a=x.0", "a=x.1"], ["a=x.0", "b=x.0"]):
        with pytest.raises(UsageError, match="declared twice"):
            parse_axes(texts)
    with pytest.raises(UsageError, match="declared twice"):
        parse_ranges(["x.1=1..4", "x.1=1..8"])
