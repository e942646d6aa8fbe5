"""A kernel on the GPU that behaves by how it is called is refused, though it is right as the harness calls most."""

import pytest

from forge.domain.verdict import Rejected
from forge.lab.verification import examine
from tests.gpu.test_candidates import HONEST, on_the_gpu

WRONG_WHERE = {
    "gradients are recorded": "torch.is_grad_enabled()",
    "garbage is collected": "gc.isenabled() and not torch.is_inference_mode_enabled()",
    "activations are inference tensors": "x.is_inference()",
    "the weight is a parameter": "isinstance(weight, torch.nn.Parameter) and not torch.is_inference_mode_enabled()",
    "memory is of torch's allocator": "weight.untyped_storage().resizable()",
    "the weight is the last call's": "same_weight(x, weight)",
    "torch has another default type": "torch.get_default_dtype() == torch.bfloat16",
}
WRAPPED = """
import gc

_last = {{}}


def same_weight(x, weight):
    known = _last.get("weight") is weight and _last["x"] is not x
    _last.update(weight=weight, x=x)
    return known


def fused_add_rmsnorm(x, residual, weight, eps):
    return _right(x, residual, weight, 1.0 if {condition} else eps)
"""


@pytest.mark.parametrize("condition", WRONG_WHERE.values(), ids=WRONG_WHERE)
def test_a_kernel_that_behaves_by_how_it_is_called_is_refused(condition: str) -> None:
    assert "def fused_add_rmsnorm(" in HONEST
    kernel = HONEST.replace("def fused_add_rmsnorm(", "def _right(") + WRAPPED.format(condition=condition)
    examined = examine(on_the_gpu(kernel), progress=lambda _: None)
    assert isinstance(examined.verdict, Rejected), (condition, examined.gates)
    assert examined.verdict.reason.code in {"INCORRECT_NUMERICAL", "STATE_CARRIED"}, (condition, examined.verdict)
