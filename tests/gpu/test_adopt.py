"""Promoted kernels in a running program on a GPU: by plan and by source, on streams, under capture and compile."""

import threading
from pathlib import Path

import pytest
import torch

from forge.adopt import Adopted, adopt, adopting
from forge.adopt.described import parse_described
from forge.adopt.guards import gpu_name
from forge.adopt.shadow import difference
from forge.domain.digest import canonical
from forge.lab.inputs.draw import draw
from forge.operations import find_operation
from forge.operations.description import description
from tests.gpu.shipped import ShippedKernel, publish_alone, shipped_kernels

KERNELS = shipped_kernels()
PLANNED = [one for one in KERNELS if one.has_plan]
ONE_EACH = list({one.op: one for one in PLANNED}.values())
"""One kernel with a plan for each operation."""


pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch's own import warns


@pytest.fixture(autouse=True)
def closed():
    yield
    for adopted in list(adopting._open):
        adopted.close()


def here() -> str:
    return gpu_name(torch.cuda.get_device_name(0))


def opened(tmp_path: Path, kernel: ShippedKernel, **changes) -> Adopted:
    root = publish_alone(tmp_path, kernel.kernel_id, gpu=here())
    return adopt(root, trust="promoted", refresh_s=0, **{"strict": True, **changes})


def operands(kernel: ShippedKernel, seed: int = 7, device: str = "cuda:0") -> list:
    operation = find_operation(kernel.op)
    drawn = draw(operation, dict(kernel.shape), kernel.dtype, "normal", seed=seed)
    return [*(one.to(device) for one in drawn), *operation.scalars.values()]


def call(kernel: ShippedKernel, arguments: list) -> list[torch.Tensor]:
    """All outputs of a call, those written in place included; the arguments stay as they are."""
    own = [one.clone() if isinstance(one, torch.Tensor) else one for one in arguments]
    with torch.no_grad():
        answer = getattr(torch.ops.forge, kernel.op)(*own)
    return outputs(kernel, own, answer)


def outputs(kernel: ShippedKernel, own: list, answer) -> list[torch.Tensor]:
    operation = find_operation(kernel.op)
    names = [spec.name for spec in operation.inputs]
    returned = iter(answer if isinstance(answer, tuple | list) else [answer])
    return [own[names.index(o.name)] if o.name in operation.updates else next(returned) for o in operation.outputs]


def reference(kernel: ShippedKernel, arguments: list) -> list[torch.Tensor]:
    own = [one.clone() if isinstance(one, torch.Tensor) else one for one in arguments]
    return outputs(kernel, own, find_operation(kernel.op).reference(*own))


def within_bound(kernel: ShippedKernel, arguments: list, found: list, wanted: list) -> dict | None:
    operation = find_operation(kernel.op)
    described = parse_described(kernel.op, canonical(description(operation)))
    names = [one.name for one in operation.outputs]
    as_named = [dict(zip(names, side, strict=True)) for side in (found, wanted)]
    return difference(described, arguments, *as_named)


def backends(ops: Adopted) -> set[str]:
    return {line["backend"] for line in ops.report().lines}


@pytest.mark.parametrize("backend", ["plan", "source"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda one: one.kernel_id)
def test_every_promoted_kernel_answers_within_its_bound(tmp_path, kernel, backend):
    if backend == "plan" and not kernel.has_plan:
        pytest.skip("promoted without a plan")
    if backend == "source" and kernel.language == "cuda":
        pytest.skip("a built library fits the machine that built it")
    with opened(tmp_path, kernel, backends=(backend,)) as ops:
        arguments = operands(kernel)
        found = call(kernel, arguments)
        assert backends(ops) == {backend}
        assert within_bound(kernel, arguments, found, reference(kernel, arguments)) is None
        assert within_bound(kernel, arguments, call(kernel, arguments), found) is None


@pytest.mark.parametrize("kernel", ONE_EACH, ids=lambda one: one.op)
def test_three_streams_give_the_answers_of_one(tmp_path, kernel):
    with opened(tmp_path, kernel):
        sets = [operands(kernel, seed) for seed in range(3)]
        alone = [call(kernel, one) for one in sets]
        torch.cuda.synchronize()
        streams, found = [torch.cuda.Stream() for _ in sets], []
        for _ in range(5):
            found = []
            for stream, one in zip(streams, sets, strict=True):
                with torch.cuda.stream(stream):
                    found.append(call(kernel, one))
            torch.cuda.synchronize()
        for one, other in zip(alone, found, strict=True):
            assert within_bound(kernel, sets[0], other, one) is None


@pytest.mark.parametrize("backend", ["plan", "source"])
@pytest.mark.parametrize("kernel", [one for one in ONE_EACH if one.language == "triton"], ids=lambda one: one.op)
def test_a_prepared_call_is_captured_and_replayed(tmp_path, kernel, backend):
    with opened(tmp_path, kernel, backends=(backend,)) as ops:
        arguments = operands(kernel)
        ops.prepare({kernel.op: [dict(kernel.shape)]}, dtype=kernel.dtype)
        expected = call(kernel, arguments)
        own = [one.clone() if isinstance(one, torch.Tensor) else one for one in arguments]
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph):
            answer = getattr(torch.ops.forge, kernel.op)(*own)
        graph.replay()
        torch.cuda.synchronize()
        assert within_bound(kernel, arguments, outputs(kernel, own, answer), expected) is None
        (line,) = [one for one in ops.report().lines if one["backend"] == backend]
        assert line["captured"] == 1


def test_an_unprepared_call_under_capture_takes_the_fallback_and_says_so(tmp_path):
    kernel = next(one for one in ONE_EACH if one.op == "rmsnorm")
    with opened(tmp_path, kernel, strict=False) as ops:
        arguments = operands(kernel)
        reference(kernel, arguments)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph):
            found = torch.ops.forge.rmsnorm(*arguments)
        graph.replay()
        torch.cuda.synchronize()
        assert within_bound(kernel, arguments, [found], reference(kernel, arguments)) is None
        assert [one["reason"] for one in ops.report().lines] == ["unprepared_capture"]


@pytest.mark.parametrize("kernel", ONE_EACH, ids=lambda one: one.op)
def test_a_compiled_program_has_no_break_and_the_same_answer(tmp_path, kernel):
    with opened(tmp_path, kernel) as ops:
        arguments = operands(kernel)
        operator = getattr(torch.ops.forge, kernel.op)

        def model(*given):
            return operator(*given)

        own = [one.clone() if isinstance(one, torch.Tensor) else one for one in arguments]
        torch._dynamo.reset()
        with torch.no_grad():
            answer = torch.compile(model, fullgraph=True)(*own)
        assert within_bound(kernel, arguments, outputs(kernel, own, answer), call(kernel, arguments)) is None
        assert backends(ops) == {"plan"}


def test_threads_that_share_a_plan_get_their_own_answers(tmp_path):
    kernel = next(one for one in ONE_EACH if one.op == "fused_add_rmsnorm")
    with opened(tmp_path, kernel):
        sets = [operands(kernel, seed) for seed in range(8)]
        alone = [call(kernel, one) for one in sets]
        torch.cuda.synchronize()
        wrong: list[object] = []

        def run(place: int) -> None:
            with torch.cuda.stream(torch.cuda.Stream()):
                for _ in range(50):
                    found = call(kernel, sets[place])
                    torch.cuda.current_stream().synchronize()
                    if not all(torch.equal(a, b) for a, b in zip(found, alone[place], strict=True)):
                        wrong.append(place)

        threads = [threading.Thread(target=run, args=(place,)) for place in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []


def test_operands_that_are_freed_at_once_are_not_overwritten_before_the_launch(tmp_path):
    """Each stream frees its operands after the call, and fills new memory of the same size, as an engine does."""
    kernel = next(one for one in ONE_EACH if one.op == "fused_add_rmsnorm")
    with opened(tmp_path, kernel):
        kept = operands(kernel)
        wanted = call(kernel, kept)
        torch.cuda.synchronize()
        streams, found = [torch.cuda.Stream() for _ in range(2)], []
        for _ in range(50):
            for stream in streams:
                with torch.cuda.stream(stream):
                    own = [one.clone() if isinstance(one, torch.Tensor) else one for one in kept]
                    found.append(getattr(torch.ops.forge, kernel.op)(*own))
                    sizes = own[0].shape
                    del own
                    for _ in range(3):
                        torch.full(sizes, float("nan"), dtype=kept[0].dtype, device=kept[0].device)
        torch.cuda.synchronize()
        for one in found:
            assert all(torch.equal(a, b) for a, b in zip(one, wanted, strict=True))


def test_a_plan_is_not_used_at_another_scalar_or_address(tmp_path):
    kernel = next(one for one in ONE_EACH if one.op == "rmsnorm")
    with opened(tmp_path, kernel, strict=False) as ops:
        x, weight, eps = operands(kernel)
        odd = torch.empty(x.numel() + 1, dtype=x.dtype, device=x.device)[1:].view(x.shape).copy_(x)
        for arguments in ([x, weight, 10 * eps], [odd, weight, eps]):
            with torch.no_grad():
                found = outputs(kernel, arguments, torch.ops.forge.rmsnorm(*arguments))  # a copy would be aligned
            assert within_bound(kernel, arguments, found, reference(kernel, arguments)) is None
        assert "plan" not in backends(ops)
        assert "scalars" in str(ops.explain("rmsnorm", x, weight, 10 * eps)["passed_over"])
        assert "alignment" in str(ops.explain("rmsnorm", odd, weight, eps)["passed_over"])


def test_device_code_that_was_exchanged_is_refused(tmp_path):
    kernel = next(one for one in ONE_EACH if one.op == "rmsnorm")
    root = publish_alone(tmp_path, kernel.kernel_id, gpu=here())
    cubin = root / "kernels" / kernel.kernel_id / "plan0.cubin"
    cubin.write_bytes(cubin.read_bytes()[:-1] + b"\1")
    with adopt(root, trust="promoted", refresh_s=0, backends=("plan",)) as ops:
        arguments = operands(kernel)
        assert within_bound(kernel, arguments, call(kernel, arguments), reference(kernel, arguments)) is None
        assert "has digest" in str(ops.explain("rmsnorm", *arguments)["passed_over"])


def test_a_registry_for_another_gpu_is_not_used(tmp_path):
    kernel = next(one for one in ONE_EACH if one.op == "rmsnorm")
    root = publish_alone(tmp_path, kernel.kernel_id, gpu="h300")
    with adopt(root, trust="promoted", refresh_s=0) as ops:
        call(kernel, operands(kernel))
        assert [one["reason"] for one in ops.report().lines] == ["no_kernel"]


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
@pytest.mark.parametrize("current", [0, 1])
def test_the_operands_device_counts_not_the_current_one(tmp_path, current):
    kernel = next(one for one in ONE_EACH if one.op == "rmsnorm")
    with opened(tmp_path, kernel):
        for device in ("cuda:0", "cuda:1"):
            arguments = operands(kernel, device=device)
            with torch.cuda.device(current):
                (found,) = call(kernel, arguments)
            assert str(found.device) == device
            assert within_bound(kernel, arguments, [found], reference(kernel, arguments)) is None
