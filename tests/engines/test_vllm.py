"""The provider inside vLLM's own IR: registered, chosen, and answered by vLLM's native code elsewhere."""

import torch
from vllm import ir

from forge.adopt.engines import vllm

x, weight = torch.randn(4, 64).bfloat16(), torch.ones(64).bfloat16()


def test_vllm_asks_the_provider_and_its_own_code_answers_elsewhere(registry):
    with vllm.register_with(ir.ops, str(registry)) as ops:
        operation = ir.ops.rms_norm
        with operation.set_priority([vllm.PROVIDER, "native"]):
            for rows in (x, x[:0], x.float()):
                native = operation.impls["native"].impl_fn(rows, weight.to(rows.dtype), 1e-6)
                torch.testing.assert_close(operation(rows, weight.to(rows.dtype), 1e-6), native, rtol=5e-2, atol=5e-2)
        assert {one["reason"] or one["backend"] for one in ops.report().lines} == {"source", "no_kernel"}
