"""Promoted kernels in compiled programs on a GPU: sources that the compiler sees, and packages of AOTInductor."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from forge.adopt import Adopted, adopting
from forge.operations import find_operation
from tests.gpu.shipped import SHIPPED, ShippedKernel, shipped_kernels
from tests.gpu.test_adopt import ONE_EACH, call, opened, operands, outputs, reference, within_bound

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*isinstance\\(treespec:FutureWarning"),
]
RMSNORM = next(one for one in shipped_kernels() if one.op == "rmsnorm" and one.has_plan)


@pytest.fixture(autouse=True)
def closed():
    yield
    for adopted in list(adopting._open):
        adopted.close()
    torch._dynamo.reset()


class Model(torch.nn.Module):
    """Norms of several sizes between operations that a compiler fuses: rows and a weight in turn."""

    def forward(self, *given: torch.Tensor) -> list[torch.Tensor]:
        pairs = zip(given[::2], given[1::2], strict=True)
        return [torch.ops.forge.rmsnorm(x * 2, weight, 1e-6) + 1 for x, weight in pairs]


def require_right(found: list[torch.Tensor], *given: torch.Tensor) -> None:
    for mine, x, weight in zip(found, given[::2], given[1::2], strict=True):
        (wanted,) = reference(RMSNORM, [x * 2, weight, 1e-6])
        torch.testing.assert_close(mine, wanted + 1, rtol=2e-2, atol=2e-2)


def source_sizes(ops: Adopted, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Rows of a shape that the promoted source answers and its plan doesn't."""
    for count in (1, 2, 4, 8, 15, 17, 32, 64, 100, 1000):
        rows = x.repeat(-(-count // x.shape[0]), 1)[:count].contiguous()
        if ops.explain("rmsnorm", rows, weight, 1e-6)["takes"] == "source":
            return rows
    raise AssertionError("the source answers at none of these shapes")


def stays_opaque(kernel: ShippedKernel) -> bool:
    """Whether the kernel's source reads numbers' bits, and has scalars."""
    return (
        bool(find_operation(kernel.op).scalars)
        and "bitcast" in (SHIPPED / "kernels" / kernel.kernel_id / "kernel.py").read_text()
    )


@pytest.mark.parametrize(
    "kernel", [one for one in ONE_EACH if one.language == "triton" and not stays_opaque(one)], ids=lambda one: one.op
)
def test_a_compiled_program_runs_the_source_that_the_compiler_saw(tmp_path, kernel):
    with opened(tmp_path, kernel, mode="transparent") as ops:
        arguments = operands(kernel)
        operator = getattr(torch.ops.forge, kernel.op)
        own = [one.clone() if isinstance(one, torch.Tensor) else one for one in arguments]
        with torch.no_grad():
            answer = torch.compile(lambda *given: operator(*given), fullgraph=True)(*own)
        found = outputs(kernel, own, answer)
        assert {(one["backend"], one["reason"]) for one in ops.report().lines} == {("source", None)}
        assert within_bound(kernel, arguments, found, reference(kernel, arguments)) is None
        assert within_bound(kernel, arguments, found, call(kernel, arguments)) is None


PLAIN_PACKAGE = """
import sys, torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2 + 1
x = torch.ones(8, 8, device="cuda")
with torch.no_grad():
    exported = torch.export.export(Model(), (x,))
    path = torch._inductor.aoti_compile_and_package(exported, package_path=sys.argv[1])
assert bool((torch._inductor.aoti_load_package(path)(x) == 3).all())
"""
"""Packages a model without any of our operations, and runs it."""


@pytest.fixture(scope="module")
def loads_packages(tmp_path_factory):
    """Skip where torch can't load its own package: torch 2.11 crashed there on an H100, whatever the model."""
    path = tmp_path_factory.mktemp("plain") / "model.pt2"
    ran = subprocess.run([sys.executable, "-c", PLAIN_PACKAGE, path], check=False, capture_output=True, text=True)
    if ran.returncode:
        pytest.skip(f"torch {torch.__version__} can't load its own package of a plain model: status {ran.returncode}")


def packaged(path: Path, *given: torch.Tensor) -> str:
    with torch.no_grad():
        exported = torch.export.export(Model(), given)
        return torch._inductor.aoti_compile_and_package(exported, package_path=str(path / "model.pt2"))


@pytest.mark.usefixtures("loads_packages")
def test_a_package_takes_plan_source_and_fallback_in_a_process_that_adopted(tmp_path):
    with opened(tmp_path, RMSNORM, strict=False) as ops:
        x, weight, _ = operands(RMSNORM)
        odd = [torch.randn(sizes, dtype=x.dtype, device=x.device) for sizes in ((3, 2049), (2049,))]
        given = (x, weight, source_sizes(ops, x, weight), weight, *odd)
        path = packaged(tmp_path, *given)
        require_right(torch._inductor.aoti_load_package(path)(*given), *given)
        assert {one["backend"] for one in ops.report().lines} == {"plan", "source", "fallback"}


@pytest.mark.usefixtures("loads_packages")
def test_a_package_with_the_source_compiled_in_runs_in_a_process_that_adopted_nothing(tmp_path):
    with opened(tmp_path, RMSNORM, mode="transparent") as ops:
        x, weight, _ = operands(RMSNORM)
        path = packaged(tmp_path, x, weight)
        assert {one["backend"] for one in ops.report().lines} == {"source"}
    torch.save([x, weight], tmp_path / "given.pt")
    code = (
        "import sys, torch; given = torch.load(sys.argv[2]); "
        "torch.save(torch._inductor.aoti_load_package(sys.argv[1])(*given), sys.argv[3])"
    )
    subprocess.run([sys.executable, "-c", code, path, tmp_path / "given.pt", tmp_path / "found.pt"], check=True)
    require_right(torch.load(tmp_path / "found.pt"), x, weight)
