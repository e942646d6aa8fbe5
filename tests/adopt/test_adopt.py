"""A call takes the promoted kernel where it fits and the fallback elsewhere, and the report says which and why."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from forge.adopt import REASONS, adopt
from forge.adopt.described import TORCH_NAMES
from forge.adopt.guards import gpu_name
from forge.domain.tensors import TORCH_NAMES as DOMAIN_NAMES
from forge.errors import AdoptionRefused
from forge.operations.rmsnorm import rmsnorm as reference
from forge.platforms.gpus import PROCESSORS, slug_of
from tests.adopt.making import KV_CACHE_APPEND, RMSNORM, cpp_kernel, kernel, publish

EPS = 1e-6


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cache = {"tokens": 3, "slots": 8, "kv_heads": 2, "head_dim": 4}
    kernels = [
        cpp_kernel(),
        kernel("rmsnorm", RMSNORM),
        kernel("kv_cache_append", KV_CACHE_APPEND, shape=cache, edges=()),
    ]
    return publish(tmp_path_factory.mktemp("registry"), kernels)


def operands(rows: int = 4, width: int = 64, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(rows * width)
    return torch.randn(rows, width, generator=generator).to(dtype), torch.randn(width, generator=generator).to(dtype)


def took(ops) -> dict[str, int]:
    """How often each backend answered, a fallback under its reason."""
    found: dict[str, int] = {}
    for line in ops.report().lines:
        name = line["reason"] or line["backend"]
        found[name] = found.get(name, 0) + line["hits"]
    return found


def test_the_promoted_cpp_kernel_answers_inside_its_domain_and_the_reference_elsewhere(registry):
    x, weight = operands()
    with adopt(registry, ["fused_add_rmsnorm"], trust="promoted", refresh_s=0) as ops:
        y, h = torch.ops.forge.fused_add_rmsnorm(x, 2 * x, weight, EPS)
        torch.testing.assert_close(h, 3 * x)
        torch.testing.assert_close(y, reference(3 * x, weight, EPS))
        torch.ops.forge.fused_add_rmsnorm(x, x, weight)
        wide, wide_weight = operands(4, 4096)
        torch.ops.forge.fused_add_rmsnorm(wide, wide, wide_weight, EPS)
        assert took(ops) == {"source": 2, "no_kernel": 1}
        (line,) = [one for one in ops.report().lines if one["backend"] == "source"]
        assert line["kernel_id"] == "cpp_fused_add_rmsnorm_cpu_fp32_v1"
        assert line["shape"] == {"batch": 4, "hidden_size": 64}
        assert (
            "hidden_size 4096, verified 16 to 512"
            in ops.explain("fused_add_rmsnorm", wide, wide, wide_weight)["detail"]
        )
    assert not hasattr(torch.ops.forge, "fused_add_rmsnorm")


def bad_calls():
    x, weight = operands()
    rows = torch.empty(4, 96)[:, :64].copy_(x)
    yield "dtype", (x.double(), weight.double(), EPS)
    yield "dtype", (x, weight.double(), EPS)
    yield "operands", (torch.ones(4, 1), torch.ones(64), EPS)
    yield "scalars", (x, weight, -1e-6)
    yield "scalars", (x, weight, 2.0)
    yield "layout", (rows, weight, EPS)
    yield "layout", (x[:1].expand(4, 64), weight, EPS)
    yield "layout", (x.t().contiguous().t(), weight, EPS)
    yield "no_kernel", (*operands(65, 512), EPS)
    yield "no_kernel", (torch.empty(0, 64), weight, EPS)
    yield "no_kernel", (*operands(4, 15), EPS)
    yield "gradient", (x.clone().requires_grad_(), weight, EPS)
    yield "tensor_type", (x.as_subclass(type("Mine", (torch.Tensor,), {})), weight, EPS)


@pytest.mark.parametrize(("reason", "call"), list(bad_calls()))
def test_what_was_not_verified_takes_the_fallback_and_is_counted_with_its_reason(registry, reason, call):
    with adopt(registry, ["rmsnorm"], trust="promoted", refresh_s=0) as ops:
        torch.testing.assert_close(torch.ops.forge.rmsnorm(*call), reference(*call), equal_nan=True)
        assert took(ops) == {reason: 1}
        assert reason in REASONS
    refused = pytest.raises(AdoptionRefused, match=f"{reason}:")
    with adopt(registry, ["rmsnorm"], trust="promoted", refresh_s=0, strict=True), refused:
        torch.ops.forge.rmsnorm(*call)


def test_a_scalar_between_verified_ones_and_a_misaligned_address_take_the_kernel(registry):
    x, weight = operands()
    odd = torch.empty(257)[1:].view(4, 64).copy_(x)
    with adopt(registry, ["rmsnorm"], trust="promoted", refresh_s=0) as ops:
        for call in ((x, weight, 1e-5), (odd, weight, EPS), (x, weight, 0.0)):
            torch.testing.assert_close(torch.ops.forge.rmsnorm(*call), reference(*call))
        assert took(ops) == {"source": 3}


def test_a_subclass_does_not_take_the_choice_of_a_plain_tensor(registry):
    x, weight = operands()
    with adopt(registry, ["rmsnorm"], trust="promoted", refresh_s=0) as ops:
        torch.ops.forge.rmsnorm(x, weight, EPS)
        torch.ops.forge.rmsnorm(x.as_subclass(type("Mine", (torch.Tensor,), {})), weight, EPS)
        torch.ops.forge.rmsnorm(torch.nn.Parameter(x, requires_grad=False), weight, EPS)
        assert took(ops) == {"source": 2, "tensor_type": 1}


def test_gradients_flow_through_the_fallback(registry):
    x, weight = (one.requires_grad_() for one in operands())
    with adopt(registry, ["rmsnorm"], trust="promoted", refresh_s=0) as ops:
        torch.ops.forge.rmsnorm(x, weight, EPS).sum().backward()
        mine = x.grad
        x.grad = None
        reference(x, weight, EPS).sum().backward()
        torch.testing.assert_close(mine, x.grad)
        with torch.no_grad():
            torch.ops.forge.rmsnorm(x, weight, EPS)
        with torch.inference_mode():
            torch.ops.forge.rmsnorm(x.detach(), weight.detach(), EPS)
        assert took(ops) == {"gradient": 1, "source": 2}


def test_an_operation_that_writes_in_place_is_adopted_and_guarded_against_overlaps(registry):
    key, value = torch.randn(3, 2, 4), torch.randn(3, 2, 4)
    slots = torch.tensor([5, -1, 0])
    with adopt(registry, ["kv_cache_append"], trust="promoted", refresh_s=0) as ops:
        caches = torch.zeros(8, 2, 4), torch.zeros(8, 2, 4)
        before = caches[0]._version
        assert torch.ops.forge.kv_cache_append(key, value, *caches, slots) is None
        assert caches[0]._version > before
        torch.testing.assert_close(caches[0][5], key[0])
        torch.testing.assert_close(caches[1][0], value[2])
        torch.ops.forge.kv_cache_append(key, value, caches[0], caches[0], slots)
        assert took(ops) == {"source": 1, "overlap": 1}
        apart = torch.zeros(16, 2, 4)
        torch.ops.forge.kv_cache_append(key, value, apart[:8], apart[8:], slots)
        assert took(ops) == {"source": 2, "overlap": 1}
        strided = torch.zeros(8, 4, 4)
        inside = strided.view(-1)[64:128].view(8, 2, 4)
        torch.ops.forge.kv_cache_append(key, value, strided[:, :2], inside, slots)
        assert took(ops) == {"source": 2, "overlap": 2}
        assert ops.explain("kv_cache_append", key, value, strided[:, :2], inside, slots)["reason"] == "overlap"


def test_a_compiled_program_has_one_graph_and_runs_the_judged_bytes(registry):
    x, weight = operands()

    def model(x, weight):
        y, h = torch.ops.forge.fused_add_rmsnorm(x + 1, x, weight, EPS)
        return torch.ops.forge.rmsnorm(y * 2, weight, EPS) + h

    with adopt(registry, ["fused_add_rmsnorm", "rmsnorm"], trust="promoted", refresh_s=0) as ops:
        torch._dynamo.reset()
        with torch.no_grad():
            compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
            torch.testing.assert_close(compiled(x, weight), model(x, weight))
            torch.testing.assert_close(compiled(x[:2], weight), model(x[:2], weight))
        assert took(ops) == {"source": 8}


def test_tracing_gives_sizes_and_types_without_a_kernel(registry):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with adopt(registry, trust="promoted", refresh_s=0) as ops, FakeTensorMode():
        y, h = torch.ops.forge.fused_add_rmsnorm(torch.empty(3, 8), torch.empty(3, 8), torch.empty(8), EPS)
        assert (y.shape, h.dtype) == ((3, 8), torch.float32)
        assert torch.ops.forge.rmsnorm(torch.empty(2, 3, 8), torch.empty(8)).shape == (2, 3, 8)
        assert ops.report().lines == []


def test_torchs_own_check_of_an_operator_finds_nothing(registry):
    x, weight = operands()
    with adopt(registry, trust="promoted", refresh_s=0):
        torch.library.opcheck(
            torch.ops.forge.rmsnorm.default, (x, weight, EPS), test_utils=("test_schema", "test_faketensor")
        )
        torch.library.opcheck(
            torch.ops.forge.kv_cache_append.default,
            (
                torch.randn(3, 2, 4),
                torch.randn(3, 2, 4),
                torch.zeros(8, 2, 4),
                torch.zeros(8, 2, 4),
                torch.tensor([1, 2, 3]),
            ),
            test_utils=("test_schema", "test_faketensor"),
        )


def test_the_callers_own_fallback_is_used(registry):
    x, weight = operands(65, 512)
    own = {"rmsnorm": lambda x, *_: x * 0}
    with adopt(registry, ["rmsnorm"], trust="promoted", fallback=own, refresh_s=0):
        assert not torch.ops.forge.rmsnorm(x, weight, EPS).any()


def test_the_switch_turns_everything_to_the_fallback_even_in_strict_mode(registry, monkeypatch):
    monkeypatch.setenv("FORGE_ADOPT", "off")
    with adopt(registry, ["rmsnorm"], trust="promoted", strict=True, refresh_s=0) as ops:
        torch.ops.forge.rmsnorm(*operands(), EPS)
        assert took(ops) == {"off": 1}


def test_explaining_a_call_runs_and_counts_nothing(registry):
    x, weight = operands()
    with adopt(registry, trust="promoted", refresh_s=0) as ops:
        told = ops.explain("rmsnorm", x, weight)
        assert (told["takes"], told["kernel_id"], told["match"]) == ("source", "torch_rmsnorm_cpu_fp32_v1", "exact")
        assert ops.explain("rmsnorm", x.double(), weight.double())["reason"] == "dtype"
        assert ops.report().lines == []


def test_sources_can_be_forbidden(registry):
    with adopt(registry, ["rmsnorm"], trust="promoted", backends=("plan",), refresh_s=0) as ops:
        torch.ops.forge.rmsnorm(*operands(), EPS)
        assert took(ops) == {"backend": 1}


def test_preparing_loads_and_says_what_each_shape_takes(registry):
    with adopt(registry, ["rmsnorm"], trust="promoted", refresh_s=0) as ops:
        shapes = {"rmsnorm": [{"batch": 4, "hidden_size": 64}, {"batch": 4, "hidden_size": 8}]}
        assert [one["takes"] for one in ops.prepare(shapes, dtype="fp32", device="cpu")] == ["source", "fallback"]


def test_a_kernel_built_for_another_machine_is_not_loaded(tmp_path):
    publish(tmp_path, [cpp_kernel() | {"abi_key": "0" * 64}])
    x, weight = operands()
    with adopt(tmp_path, trust="promoted", refresh_s=0) as ops:
        torch.ops.forge.fused_add_rmsnorm(x, x, weight, EPS)
        assert took(ops) == {"not_loadable": 1}


def test_a_kernel_that_raises_is_withdrawn_from_the_process_and_the_call_is_answered(tmp_path):
    publish(tmp_path, [kernel("rmsnorm", "def rmsnorm(x, weight, eps):\n    raise ValueError('no')\n")])
    x, weight = operands()
    with adopt(tmp_path, trust="promoted", refresh_s=0) as ops:
        for _ in range(2):
            torch.testing.assert_close(torch.ops.forge.rmsnorm(x, weight, EPS), reference(x, weight, EPS))
        assert took(ops) == {"source": 1, "failed": 2}
        assert "raised ValueError('no')" in ops.report().document["withdrawn"]["torch_rmsnorm_cpu_fp32_v1"]


def test_damaged_bytes_are_never_run(tmp_path):
    publish(tmp_path, [kernel("rmsnorm", RMSNORM + "# damaged later\n")])
    (tmp_path / "kernels" / "torch_rmsnorm_cpu_fp32_v1" / "kernel.py").write_text("raise SystemExit")
    with adopt(tmp_path, trust="promoted", refresh_s=0) as ops:
        assert ops.explain("rmsnorm", *operands())["takes"] == "source"
        torch.ops.forge.rmsnorm(*operands(), EPS)
        assert took(ops) == {"not_loadable": 1}
        told = ops.explain("rmsnorm", *operands())
        assert (told["takes"], told["kernel_id"], told["reason"]) == ("fallback", None, "not_loadable")
        assert told["passed_over"][-1][0] == "source"
        (prepared,) = ops.prepare({"rmsnorm": [{"batch": 4, "hidden_size": 64}]}, dtype="fp32", device="cpu")
        assert (prepared["takes"], prepared["reason"]) == ("fallback", "not_loadable")


def test_threads_count_without_losing_a_call(registry):
    x, weight = operands()
    with adopt(registry, ["rmsnorm"], trust="promoted", refresh_s=0) as ops, torch.no_grad():
        threads = [
            threading.Thread(target=lambda: [torch.ops.forge.rmsnorm(x, weight, EPS) for _ in range(200)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert took(ops) == {"source": 800}


def test_the_report_is_json_and_a_table(registry, tmp_path):
    with adopt(registry, ["rmsnorm"], trust="promoted", refresh_s=0) as ops:
        torch.ops.forge.rmsnorm(*operands(), EPS)
        ops.write_report(tmp_path / "report.json")
        document = json.loads((tmp_path / "report.json").read_text())
        assert document["lines"][0]["hits"] == 1
        assert "torch_rmsnorm_cpu_fp32_v1" in ops.report().table()


def test_importing_the_package_imports_neither_torch_nor_the_rest_of_forge():
    said = (
        "import forge.adopt, sys; "
        "bad = [m for m in sys.modules if m in ('torch', 'pydantic', 'numpy') or m.startswith('forge.') and "
        "not m.startswith(('forge.adopt', 'forge.lookup', 'forge.errors'))]; print(bad)"
    )
    answer = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_the_names_of_types_and_devices_are_those_of_the_domain():
    assert dict(DOMAIN_NAMES) == TORCH_NAMES
    for processor in PROCESSORS.values():
        if processor.platform == "cuda":
            for name in (processor.slug, *processor.aliases):
                assert gpu_name(f"NVIDIA {name.upper()}") == slug_of(f"NVIDIA {name.upper()}")
