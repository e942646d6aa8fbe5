"""Reading description files: where a contender applies, and what is refused with which words."""

import pytest

from forge.contenders.description import AxisRange, Call, parse_description, why_not_applicable
from forge.errors import UsageError
from tests.contenders.distributions import call, described

SOFTMAX = call("softmax", "return x.softmax(-1)", more="axes = { hidden_size = { most = 1024, multiple_of = 8 } }")


def only(text: str) -> Call:
    (one,) = parse_description(text.encode(), "acme.toml").contender
    return one


def test_a_description_says_where_it_applies() -> None:
    one = only(described(SOFTMAX))
    shape = {"batch": 4, "hidden_size": 1024}
    assert why_not_applicable(one, "fp32", shape, device="cpu", arch="host") is None
    assert why_not_applicable(one, "fp32", shape, device="cuda", arch="sm_90") == "the device is cuda: expected cpu"
    wide = {**shape, "hidden_size": 2048}
    assert (
        why_not_applicable(one, "fp32", wide, device="cpu", arch="host")
        == "hidden_size is 2048: expected at most 1024"
    )
    odd = {**shape, "hidden_size": 1001}
    assert (
        why_not_applicable(one, "fp32", odd, device="cpu", arch="host")
        == "hidden_size is 1001: expected a multiple of 8"
    )
    assert why_not_applicable(one, "fp32", {"batch": 4}, device="cpu", arch="host") == (
        "it names the axis 'hidden_size': expected one of batch"
    )


def test_a_size_below_the_least_or_not_listed_is_outside() -> None:
    assert AxisRange(least=2).why_not("m", 1) == "m is 1: expected at least 2"
    assert AxisRange(is_one_of=(64, 128)).why_not("d", 96) == "d is 96: expected one of 64, 128"
    assert AxisRange(is_one_of=(64, 128)).why_not("d", 128) is None


def test_types_and_architectures_limit_it_too() -> None:
    one = only(described(call("x", "return x", devices='["cuda"]', more='dtypes = ["bf16"]\narchs = ["sm_90"]')))
    shape = {"batch": 1}
    assert why_not_applicable(one, "fp32", shape, device="cuda", arch="sm_90") == "the type is fp32: expected bf16"
    assert why_not_applicable(one, "bf16", shape, device="cuda", arch="sm_80") == (
        "the architecture is sm_80: expected sm_90"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "library"),
        ("[library", "can't be read as TOML"),
        (described(), "contender"),
        (described(SOFTMAX, versions="new"), "library.versions"),
        (described(SOFTMAX, library="Acme!"), "library.name"),
        (described(SOFTMAX).replace('["cpu"]', '["tpu"]'), "devices"),
        (described(SOFTMAX).replace('["cpu"]', "[]"), "devices"),
        (described(SOFTMAX).replace("def contender", "def other"), "no function 'contender'"),
        (described(SOFTMAX).replace("def contender(x):", "def contender(x:"), "isn't Python"),
        (described(SOFTMAX, SOFTMAX), "described twice"),
        (described(SOFTMAX).replace("most = 1024", "most = 0, least = 9"), "no size fits"),
        (described(SOFTMAX).replace("multiple_of = 8", "multiple_of = 0"), "multiple_of"),
        (described(SOFTMAX) + 'compile_mode = "max-autotune-no-cudagraphs"\n', "either `call` or `compile_mode`"),
        (
            described('[[contender]]\nname = "a"\noperation = "softmax"\ndevices = ["cpu"]\n'),
            "either `call` or `compile_mode`",
        ),
        (described(call("a", "return x", operation="*")), "operation '*' has a `call`"),
        (described(SOFTMAX) + 'speed = "best"\n', "speed"),
    ],
)
def test_a_wrong_description_is_refused_by_file_and_field(text: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_description(text.encode(), "acme.toml")
    assert refused.value.message.startswith("acme.toml")
    assert said in refused.value.message


def test_a_description_that_is_no_text_is_refused() -> None:
    with pytest.raises(UsageError, match="can't be read as TOML"):
        parse_description(b"\xff\xfe\x00", "acme.toml")
