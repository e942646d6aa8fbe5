"""Transparent mode: a compiler sees a promoted Triton source while it traces, and an opaque operation elsewhere.

There is no GPU here: the tensors are fake ones on a GPU that torch only names. tests/gpu compiles and runs them.
"""

import logging
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import triton
import triton.language as tl
from torch._dynamo.utils import counters
from torch._subclasses import FakeTensorMode
from torch._subclasses.functional_tensor import dispatch_functionalize
from torch.fx.experimental.proxy_tensor import make_fx

from forge.adopt import adopt
from forge.adopt.transparent import traceable
from forge.errors import EnvironmentUnfit, UsageError
from tests.adopt.making import RMSNORM, kernel, publish
from tests.gpu.shipped import publish_alone

KERNEL = "triton_rmsnorm_h200_bf16_b16_h4096_v1"
SIZES = (16, 4096)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_alone(tmp_path_factory.mktemp("registry"), KERNEL, gpu="h200")


@pytest.fixture(autouse=True)
def named_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: "NVIDIA H200")
    monkeypatch.setattr(logging.getLogger("torch._higher_order_ops.triton_kernel_wrap"), "disabled", True)


def traced(sizes=SIZES, *, strided=False, eps=1e-6, dtype=torch.bfloat16) -> list[str]:
    """The names of what a compiler sees of a call."""
    with FakeTensorMode(), torch.no_grad():
        x = torch.empty_strided(sizes, (sizes[1] * (2 if strided else 1), 1), dtype=dtype, device="cuda")
        weight = torch.empty(sizes[1], dtype=dtype, device="cuda")
        graph = make_fx(dispatch_functionalize(lambda *given: torch.ops.forge.rmsnorm(*given, eps)))(x, weight)
    return [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]


SEEN, OPAQUE = "triton_kernel_wrapper_functional", "forge.rmsnorm.default"


def test_a_compiler_sees_the_promoted_source_and_the_report_says_source(root):
    with adopt(root, ["rmsnorm"], trust="promoted", refresh_s=0, mode="transparent") as ops:
        assert SEEN in traced()
        assert OPAQUE not in traced()
        (line,) = ops.report().lines
        assert (line["backend"], line["kernel_id"], line["hits"]) == ("source", KERNEL, 2)
        assert "aren't counted" in line["detail"]


def test_an_opaque_operation_stays_one(root):
    with adopt(root, ["rmsnorm"], trust="promoted", refresh_s=0):
        assert traced() == [OPAQUE]


@pytest.mark.parametrize(
    "call",
    [{"sizes": (1 << 20, 8)}, {"strided": True}, {"eps": 5.0}, {"dtype": torch.float64}],
    ids=["shape", "strides", "scalar", "dtype"],
)
def test_a_call_beyond_the_evidence_stays_opaque(root, call):
    with adopt(root, ["rmsnorm"], trust="promoted", refresh_s=0, mode="transparent"):
        assert traced(**call) == [OPAQUE]


def test_no_source_is_seen_where_it_may_not_run(root, monkeypatch):
    with adopt(root, ["rmsnorm"], trust="promoted", refresh_s=0, mode="transparent", backends=("plan",)):
        assert traced() == [OPAQUE]
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: "NVIDIA H100 80GB HBM3")
    with adopt(root, ["rmsnorm"], trust="promoted", refresh_s=0, mode="transparent"):
        assert traced() == [OPAQUE]
    monkeypatch.setenv("FORGE_ADOPT", "off")
    with adopt(root, ["rmsnorm"], trust="promoted", refresh_s=0, mode="transparent"):
        assert traced() == [OPAQUE]


def test_a_source_that_cannot_be_traced_leaves_the_operation_opaque_and_is_not_counted_as_compiled(root, monkeypatch):
    monkeypatch.setattr(torch, "empty_like", lambda *_, **__: 1 / 0)
    with adopt(root, ["rmsnorm"], trust="promoted", refresh_s=0, mode="transparent") as ops:
        assert traced() == [OPAQUE]
        assert [(one["reason"], one["hits"]) for one in ops.report().lines] == [("untraceable", 1)]


def test_a_source_that_cannot_be_loaded_leaves_the_operation_opaque_and_the_report_says_why(tmp_path):
    damaged = publish_alone(tmp_path, "triton_rmsnorm_h200_fp16_b4096_h4096_v1", gpu="h200")  # no test loaded it
    with adopt(damaged, ["rmsnorm"], trust="promoted", refresh_s=0, mode="transparent") as ops:
        (source,) = damaged.rglob("kernel.py")
        source.chmod(0o644)
        source.write_text("raise SystemError")
        assert traced((4096, 4096), dtype=torch.float16) == [OPAQUE]
        (line,) = ops.report().lines
        assert (line["reason"], "kernel.py" in line["detail"]) == ("untraceable", True)


@triton.jit
def _bits_of(number):
    return number.to(tl.int32, bitcast=True)


def reads_bits(x: torch.Tensor) -> torch.Tensor:
    return _bits_of[(1,)](x)


def test_a_source_with_scalars_that_reads_numbers_bits_stays_opaque():
    assert traceable(reads_bits, has_scalars=True) is None
    assert traceable(reads_bits, has_scalars=False) is not None


def test_export_keeps_the_operation_whole_for_a_later_compilation(root):
    with adopt(root, ["rmsnorm"], trust="promoted", refresh_s=0, mode="transparent"):
        from torch._functorch import config

        with config.patch(decompose_custom_triton_ops=False):
            assert traced() == [OPAQUE]


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_no_program_of_another_adoption_is_taken_from_torchs_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "programs"))
    registry = publish(tmp_path / "registry", [kernel("rmsnorm", RMSNORM)])

    def found_on_disk(mode) -> int:
        torch._dynamo.reset()
        counters.clear()
        with adopt(registry, ["rmsnorm"], trust="promoted", refresh_s=0, mode=mode), torch.no_grad():
            torch.compile(lambda *given: torch.ops.forge.rmsnorm(*given, 1e-6) + 1)(torch.ones(4, 64), torch.ones(64))
        return counters["aot_autograd"]["autograd_cache_hit"]

    assert [found_on_disk(mode) for mode in ("opaque", "opaque", "transparent")] == [0, 1, 0]


def test_a_torch_that_cant_keep_its_programs_apart_is_refused(root, monkeypatch):
    monkeypatch.setattr(torch.compiler, "config", SimpleNamespace())
    with pytest.raises(EnvironmentUnfit, match="upgrade torch"):
        adopt(root, ["rmsnorm"], trust="promoted", refresh_s=0, mode="transparent")
    with adopt(root, ["rmsnorm"], trust="promoted", refresh_s=0):
        pass


def test_an_unknown_mode_is_refused(root):
    with pytest.raises(UsageError, match="opaque, transparent"):
        adopt(root, ["rmsnorm"], trust="promoted", mode="fast")
