"""An own operation is adopted like one of the catalogue: its owner's frozen file is the fallback."""

import pytest
import torch

from forge.adopt import adopt
from forge.domain.digest import sha256
from forge.domain.own_operation import Weight
from forge.domain.source_syntax import syntax_sha256
from forge.operations.description import description
from forge.operations.own import make_known, own_operation
from tests.adopt.making import kernel, publish
from tests.lab.reference.references import square_contract

SOURCE = b"import torch\n\n\ndef kernel(x):\n    return x * x\n"
KERNEL = "def square(x):\n    return x.square()\n"


def own(**changes: object):
    named = {"source_sha256": sha256(SOURCE), "syntax_sha256": syntax_sha256(SOURCE), "entry": "kernel"}
    return own_operation(square_contract(8).model_copy(update={**named, **changes}), SOURCE)


@pytest.mark.parametrize("batched", [True, False])
def test_its_kernel_answers_and_its_owners_file_is_the_fallback(tmp_path, batched):
    contract = square_contract(8)
    arguments, results = (
        (one.model_copy(update={"batched": batched}),) for one in (*contract.arguments, *contract.results)
    )
    operation = own(arguments=arguments, results=results)
    make_known(operation)
    made = kernel(operation.name, KERNEL, shape={"batch": 8}, edges=({"batch": 1},), entry_point="square")
    publish(tmp_path, [made])
    with adopt(tmp_path, trust="promoted", refresh_s=0, shadow=1.0) as ops:
        sizes = operation.inputs[0].sizes({"batch": 8})
        assert sizes == (8, 8)
        x = torch.rand(sizes)
        call = getattr(torch.ops.forge, operation.name)
        torch.testing.assert_close(call(x), x * x)
        more = torch.rand(9, 8)
        torch.testing.assert_close(call(more), more * more)
        taken = {line["reason"] or line["backend"]: line["hits"] for line in ops.report().lines}
        assert taken == {"source": 1, "no_kernel" if batched else "operands": 1}
        assert not ops.report().document["withdrawn"]


@pytest.mark.parametrize(
    "change",
    [{"form": "model"}, {"weights": (Weight(names=("w",), element=None, sizes=(8,), parameter=True),)}],
)
def test_an_own_operation_that_is_no_plain_function_says_why(change):
    assert description(own(**change))["unfit"]
    assert description(own())["unfit"] is None
