"""A package of AOTInductor names the operation: each call decides anew, in a process that adopted.

Triton sources that a package has compiled in run on a GPU alone (tests/gpu/test_adopt_compiled.py).
"""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from forge.adopt import adopt
from tests.adopt.making import cpp_kernel, publish
from tests.adopt.test_adopt import EPS, operands, took

OPS = ("fused_add_rmsnorm",)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning", "ignore:.*treespec:FutureWarning"),
]


class TwoSizes(torch.nn.Module):
    """Calls the operation at a size that was judged and at one that is too wide."""

    def forward(self, *given: torch.Tensor) -> list[torch.Tensor]:
        return [
            part
            for x, weight in (given[:2], given[2:])
            for part in torch.ops.forge.fused_add_rmsnorm(x + 1, x, weight, EPS)
        ]


@pytest.fixture(scope="module")
def given() -> tuple[torch.Tensor, ...]:
    return *operands(), *operands(3, 600)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory, given: tuple[torch.Tensor, ...]) -> Path:
    """The model as a package, made where the operation was adopted; no kernel is published there."""
    folder = tmp_path_factory.mktemp("package")
    with adopt(publish(folder, [], ops=OPS), OPS, trust="promoted"), torch.no_grad():
        exported = torch.export.export(TwoSizes(), given)
        path = torch._inductor.aoti_compile_and_package(exported, package_path=str(folder / "model.pt2"))
    return Path(path)


def test_a_package_takes_what_is_promoted_when_it_is_called(
    package: Path, given: tuple[torch.Tensor, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # a package is unpacked there, and stays
    with adopt(publish(tmp_path, [cpp_kernel()]), OPS, trust="promoted", refresh_s=0) as ops, torch.no_grad():
        program = torch._inductor.aoti_load_package(str(package))
        expected = TwoSizes()(*given)
        torch.testing.assert_close(program(*given), expected)
        assert took(ops) == {"source": 2, "no_kernel": 2}
        publish(tmp_path, [], ops=OPS, seq=2)
        assert ops.refresh()
        torch.testing.assert_close(program(*given), expected)
        assert took(ops) == {"source": 2, "no_kernel": 4}


def test_a_process_that_adopted_nothing_is_told_which_operation_is_missing(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    code = "import sys, torch; torch._inductor.aoti_load_package(sys.argv[1])"
    ran = subprocess.run([sys.executable, "-c", code, package], check=False, capture_output=True, text=True)
    assert ran.returncode == 1
    assert "Could not find schema for forge::fused_add_rmsnorm" in ran.stderr
