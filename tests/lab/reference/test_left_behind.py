"""A candidate for a reference file leaves the process's settings as its import and its calls found them."""

from pathlib import Path

import pytest

from forge.domain.verdict import Accepted, Rejected
from forge.executor.local import LocalExecutor
from tests.lab.reference.references import job_against, known

pytestmark = [pytest.mark.usefixtures("walls", "short_series")]
FUNCTION = """
import torch


def kernel(x, b):
    return x * 2.0 + b


def get_inputs():
    return [torch.randn(8, 64), torch.randn(64)]
"""
MODEL = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(12, 8)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(6, 12)]
"""
SETTINGS = (
    "torch.set_default_dtype(torch.float64)",
    "torch.set_grad_enabled(False)",
    "torch.set_float32_matmul_precision('medium')",
    "torch.manual_seed(0)",
)


def verdict(folder: Path, source: str, candidate: str, entry: str) -> Accepted | Rejected:
    job = job_against(known(source), candidate, entry)
    return LocalExecutor(folder / "lock").examine(job, progress=lambda _: None).verdict


def at_import(source: str, line: str) -> str:
    return source.replace("import torch\n", f"import torch\n\n{line}\n", 1)


@pytest.mark.parametrize("setting", SETTINGS)
def test_an_import_leaves_no_setting_behind(setting: str, tmp_path: Path) -> None:
    refused = verdict(tmp_path, FUNCTION, at_import(FUNCTION, setting), "kernel")
    assert isinstance(refused, Rejected)
    assert refused.reason.code == "STATE_CARRIED"


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_call_leaves_no_setting_behind(setting: str, tmp_path: Path) -> None:
    candidate = FUNCTION.replace("    return x", f"    {setting}\n    return x")
    refused = verdict(tmp_path, FUNCTION, candidate, "kernel")
    assert isinstance(refused, Rejected)
    assert refused.reason.code == "STATE_CARRIED"


def test_a_constructor_may_draw_weights_and_leaves_no_setting_behind(tmp_path: Path) -> None:
    candidate = MODEL.replace("class Model", "class ModelNew")
    drawing = candidate.replace("super().__init__()", "super().__init__()\n        torch.manual_seed(3)")
    assert verdict(tmp_path, MODEL, drawing, "ModelNew") == Accepted()
    changing = candidate.replace("super().__init__()", f"super().__init__()\n        {SETTINGS[2]}")
    refused = verdict(tmp_path, MODEL, changing, "ModelNew")
    assert isinstance(refused, Rejected)
    assert refused.reason.code == "STATE_CARRIED"


def test_a_reference_may_set_what_it_needs(tmp_path: Path) -> None:
    source = at_import(FUNCTION, SETTINGS[2])
    assert verdict(tmp_path, source, FUNCTION, "kernel") == Accepted()
