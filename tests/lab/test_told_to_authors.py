"""What a refusal tells the author: the shape at which a call raised, and that something was kept between calls."""

import pytest

from forge.domain.verdict import Rejected
from forge.lab.verification import examine
from tests.candidates import job_for

RAISES_WITHOUT_ROWS = """
def softmax(x):
    if not x.shape[0]:
        raise ValueError("no rows")
    return x.softmax(-1)
"""
KEEPS_THE_WEIGHT = """
_kept = {}


def rmsnorm(x, weight, eps):
    packed = _kept.setdefault(weight.data_ptr(), weight.clone())
    return x * x.square().mean(-1, keepdim=True).add(eps).rsqrt() * packed
"""


@pytest.mark.usefixtures("walls")
@pytest.mark.parametrize(
    ("operation", "kernel", "gate", "said"),
    [
        ("softmax", RAISES_WITHOUT_ROWS, "sizes", "the call raised an exception, at batch=0, hidden_size="),
        ("rmsnorm", KEEPS_THE_WEIGHT, "replay", "right in the first call, wrong with other contents in the same"),
    ],
)
def test_the_message_says_where_a_call_raised_or_what_was_kept(
    operation: str, kernel: str, gate: str, said: str
) -> None:
    examined = examine(job_for(kernel, language="torch", operation=operation), progress=lambda _: None)
    assert isinstance(examined.verdict, Rejected)
    assert (examined.gates[-1].name, examined.verdict.reason.message[: len(said)]) == (gate, said)
