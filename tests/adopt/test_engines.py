"""Adapters of engines: against stand-ins of vLLM's and FlashInfer's protocols, and modules as transformers has."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from forge.adopt import adopt
from forge.adopt.engines import flashinfer, transformers, vllm
from forge.errors import UsageError
from forge.operations.rmsnorm import rmsnorm as reference
from tests.adopt.making import RMSNORM, cpp_kernel, kernel, publish

BF16_RMSNORM = {"dtype": "bf16", "kernel_id": "torch_rmsnorm_cpu_bf16_v1"}


class StandInOperation:
    """A stand-in for an operation of `vllm.ir`: only what its documented registration does, none of its dispatch."""

    def __init__(self, native: Callable) -> None:
        self.impls = {"native": SimpleNamespace(impl_fn=native, supports_args=None, supported=True)}

    def register_impl(self, provider: str, *, supports_args: Callable, supported: bool) -> Callable:
        def registered(function: Callable) -> Callable:
            self.impls[provider] = SimpleNamespace(impl_fn=function, supports_args=supports_args, supported=supported)
            return function

        return registered

    def __call__(self, *arguments: object) -> torch.Tensor:
        chosen = self.impls.get("forge")
        fits = chosen is not None and chosen.supported and chosen.supports_args(*arguments)
        return (chosen if fits else self.impls["native"]).impl_fn(*arguments)


def native(x, weight, epsilon, variance_size=None):
    return reference(x, torch.ones(x.shape[-1]) if weight is None else weight, epsilon)


@pytest.fixture
def registry(tmp_path):
    return publish(tmp_path, [kernel("rmsnorm", RMSNORM, **BF16_RMSNORM)])


def test_the_stand_in_of_vllm_asks_the_provider_and_its_own_code_answers_elsewhere(registry):
    ir_ops = SimpleNamespace(rms_norm=StandInOperation(native))
    with vllm.register_with(ir_ops, str(registry)) as ops:
        x, weight = torch.randn(4, 64).bfloat16(), torch.ones(64).bfloat16()
        calls = [
            (x, weight, 1e-6),
            (x[:0], weight, 1e-6),
            (x, None, 1e-6),
            (x, weight, 1e-6, 32),
            (x.float(), weight.float(), 1e-6),
        ]
        for call in calls:
            torch.testing.assert_close(ir_ops.rms_norm(*call), native(*call))
        assert {line["reason"] or line["backend"]: line["hits"] for line in ops.report().lines} == {
            "source": 1,
            "no_kernel": 1,
        }


def test_what_vllm_is_told_depends_on_devices_types_and_ranks_only(registry):
    x, weight = torch.empty(4, 64, dtype=torch.bfloat16), torch.empty(64, dtype=torch.bfloat16)
    with adopt(registry, trust="promoted", refresh_s=0) as ops:
        supports = vllm.supports_args(vllm.OPERATIONS[0], ops.operations["rmsnorm"])
        assert supports(x, weight, 1e-6, None)
        assert supports(x[:, :1], weight[:1], 1e-6)
        assert not supports(x, None, 1e-6)
        assert not supports(x[None], weight, 1e-6)
        assert not supports(x, weight.half(), 1e-6)
        assert not supports(x, weight, 1e-6, 32)
        assert not supports(x.half(), weight.half(), 1e-6)
        assert not supports(x.to("meta"), weight.to("meta"), 1e-6)


def test_without_a_registry_nothing_is_registered(monkeypatch, tmp_path):
    monkeypatch.delenv(vllm.REGISTRY, raising=False)
    assert vllm.register() is None
    publish(tmp_path, [kernel("softmax", "def softmax(x): ...\n")])
    with pytest.raises(UsageError, match="describes none of rmsnorm"):
        vllm.register_with(SimpleNamespace(rms_norm=StandInOperation(native)), str(tmp_path))


class SomeRMSNorm(nn.Module):
    """A norm of the form that transformers' Llama has."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width), requires_grad=False)
        self.variance_epsilon = 1e-6

    def forward(self, hidden_states):
        wide = hidden_states.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * wide.to(hidden_states.dtype)


class OtherRMSNorm(SomeRMSNorm):
    """A norm that adds one to its weight, as Gemma's does."""

    def forward(self, hidden_states):
        return super().forward(hidden_states) * (1 + self.weight) / self.weight


def test_norms_of_a_model_call_the_adopted_operation_and_others_stay(registry):
    model = nn.Sequential(SomeRMSNorm(64), nn.Linear(64, 64), SomeRMSNorm(64), OtherRMSNorm(64)).bfloat16()
    x = torch.randn(2, 2, 64).bfloat16()
    with adopt(registry, trust="promoted", refresh_s=0) as ops, torch.no_grad():
        before = model(x)
        assert transformers.kernelize(model, ops) == ["0", "2"]
        torch.testing.assert_close(model(x), before, rtol=5e-2, atol=5e-2)
        assert [line["hits"] for line in ops.report().lines] == [2]
        with pytest.raises(UsageError, match="has no layer"):
            transformers.kernelize(model, ops)
        transformers.restore(model)
        assert torch.equal(model(x), before)


def test_a_model_without_norms_and_a_registry_without_the_operation_are_refused(registry, tmp_path):
    with adopt(registry, trust="promoted", refresh_s=0) as ops, pytest.raises(UsageError, match="has no layer"):
        transformers.kernelize(nn.Linear(4, 4), ops)
    publish(tmp_path / "other", [kernel("softmax", "def softmax(x): ...\n")])
    with (
        adopt(tmp_path / "other", trust="promoted", refresh_s=0) as ops,
        pytest.raises(UsageError, match="isn't adopted"),
    ):
        transformers.kernelize(nn.Linear(4, 4), ops)


class StandInTraceApply:
    """A stand-in for FlashInfer's `trace_apply`: names, keywords and destinations as it documents them."""

    def __init__(self, solutions: dict[str, Callable]) -> None:
        self.solutions = solutions

    def rmsnorm(self, x, weight, eps=1e-6):
        solution = self.solutions.get(f"rmsnorm_h{x.shape[1]}")
        return native(x, weight, eps) if solution is None else solution(hidden_states=x, weight=weight)

    def fused_add_rmsnorm(self, x, residual, weight, eps=1e-6):
        solution = self.solutions.get(f"fused_add_rmsnorm_h{x.shape[1]}")
        if solution is None:
            return in_place_fused(x, residual, weight, eps)
        found = solution(hidden_states=x, residual=residual, weight=weight)
        for place, value in zip((x, residual), found, strict=True):
            place.copy_(value)
        return None


def in_place_fused(x, residual, weight, eps):
    residual += x
    x.copy_(reference(residual, weight, eps))


def test_the_stand_in_of_flashinfer_takes_adopted_norms_by_the_names_of_its_definitions(tmp_path):
    publish(tmp_path, [cpp_kernel(), kernel("rmsnorm", RMSNORM)])
    own = flashinfer.fallbacks_of(native, in_place_fused)
    with adopt(tmp_path, trust="promoted", refresh_s=0, fallback=own) as ops:
        applied = StandInTraceApply(flashinfer.solutions(ops, [64, 1024], epsilon=1e-6))
        assert set(applied.solutions) == {f"{name}_h{size}" for name in flashinfer.NAMES for size in (64, 1024)}
        for width in (64, 1024, 32):
            x, residual, weight = torch.randn(4, width), torch.randn(4, width), torch.rand(width)
            torch.testing.assert_close(applied.rmsnorm(x, weight), reference(x, weight, 1e-6))
            wanted, sums = reference(x + residual, weight, 1e-6), x + residual
            assert applied.fused_add_rmsnorm(x, residual, weight) is None
            torch.testing.assert_close(x, wanted)
            torch.testing.assert_close(residual, sums)
        took = {(line["op"], line["reason"] or line["backend"]) for line in ops.report().lines}
        assert took == {(name, what) for name in flashinfer.NAMES for what in ("source", "no_kernel")}


@pytest.mark.parametrize(("sizes", "epsilon"), [([64], 1e-5), ([0], 1e-6), (["64"], 1e-6), ([1 << 30], 1e-6)])
def test_a_map_for_flashinfer_that_would_answer_wrongly_is_refused(registry, sizes, epsilon):
    with adopt(registry, trust="promoted", refresh_s=0) as ops, pytest.raises(UsageError, match="bad"):
        flashinfer.solutions(ops, sizes, epsilon=epsilon)


def test_a_map_for_flashinfer_needs_a_norm(tmp_path):
    publish(tmp_path, [kernel("softmax", "def softmax(x): ...\n")])
    with adopt(tmp_path, trust="promoted", refresh_s=0) as ops, pytest.raises(UsageError, match="no norm"):
        flashinfer.solutions(ops, [64], epsilon=1e-6)
