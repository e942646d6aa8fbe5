from pathlib import Path

import pytest

from forge.domain.verdict import Accepted, Rejected
from forge.executor.local import LocalExecutor
from forge.lab.verification import Examination
from forge.sandbox.isolation import Walls
from tests.lab.reference.references import AS_SOLVED, FUNCTION, job_for

pytestmark = pytest.mark.usefixtures("short_series")

WRONG = {
    "a batch norm left out": (FUNCTION.replace("normal @", "x @"), "kernel", "INCORRECT_NUMERICAL"),
    "a constant left out": (FUNCTION.replace(" * scale\n", "\n"), "kernel", "INCORRECT_NUMERICAL"),
    "one batch only": (
        FUNCTION.replace("def kernel", "def right") + "def kernel(x, *others):\n"
        "    y = right(x, *others)\n    return y if x.shape[0] == 6 else y * 0\n",
        "kernel",
        "INCORRECT_NUMERICAL",
    ),
    "stale weights": (
        "kept = []\n"
        + FUNCTION.replace("    centered", "    kept.append(out_weight.clone())\n    centered").replace(
            "@ out_weight.T", "@ kept[0].T"
        ),
        "kernel",
        "INCORRECT_NUMERICAL",
    ),
    "weights known by their sums": (
        FUNCTION.replace("def kernel", "kept = {}\ndef kernel").replace(
            "    centered",
            "    known = round(float(out_weight.sum()), 3), float(out_weight[0, 0]), float(out_weight[-1, -1])\n"
            "    out_weight = kept.setdefault(known, out_weight.clone())\n    centered",
            1,
        ),
        "kernel",
        "INCORRECT_NUMERICAL",
    ),
    "one buffer for all, seen transposed": (
        "kept = {}\n"
        + FUNCTION.replace("def kernel", "def right")
        + "def kernel(*operands):\n    y = right(*operands).t()\n"
        "    buffer = kept.setdefault(y.shape, y.contiguous())\n"
        "    buffer.copy_(y)\n    return buffer.t()\n",
        "kernel",
        "STATE_CARRIED",
    ),
    "the first weights kept whatever is put": (
        "import torch.nn as nn\nput = nn.Module.__setattr__\n\n\ndef once(self, name, value):\n"
        "    if not isinstance(self, nn.Linear) or name not in self._parameters or len(self.puts) < 2:\n"
        "        put(self, name, value)\n        self.__dict__.setdefault('puts', [0])\n"
        "        self.puts.append(0)\n\n\nnn.Linear.__setattr__ = once\n" + AS_SOLVED,
        "ModelNew",
        "INCORRECT_NUMERICAL",
    ),
    "a batch norm left out under inference mode": (
        FUNCTION.replace("normal @", "(x if torch.is_inference_mode_enabled() else normal) @"),
        "kernel",
        "INCORRECT_NUMERICAL",
    ),
    "half precision": (
        FUNCTION.replace("normal @ out_weight.T", "(normal.half() @ out_weight.T.half()).float()"),
        "kernel",
        "INCORRECT_NUMERICAL",
    ),
    "other names": (
        AS_SOLVED.replace("self.linear", "self.projection").replace(
            "        self.slope", "        self.shift = nn.Parameter(torch.zeros(8))\n        self.slope"
        ),
        "ModelNew",
        "BAD_SUBMISSION",
    ),
    "an input written to": (
        FUNCTION.replace("    centered", "    x.mul_(1)\n    x.add_(0)\n    centered"),
        "kernel",
        "INPUT_MUTATED",
    ),
}


def _examined(kernel: str, entry_point: str, folder: Path) -> Examination:
    executor = LocalExecutor(folder / "lock")
    return executor.examine(job_for(kernel, entry_point), progress=lambda _: None)


@pytest.mark.parametrize(("kernel", "entry_point"), [(AS_SOLVED, "ModelNew"), (FUNCTION, "kernel")])
def test_a_right_candidate_is_accepted_as_a_class_and_as_a_function(
    kernel: str, entry_point: str, tmp_path: Path, walls: Walls
) -> None:
    examined = _examined(kernel, entry_point, tmp_path)
    assert examined.verdict == Accepted(), examined.verdict
    assert {gate.name for gate in examined.gates if gate.verdict != "passed"} <= {"configurations", "domain"}
    names = {gate.name for gate in examined.gates}
    assert {"signature", "replay", "numerics", "sizes", "state", "bounds", "mutation"} <= names


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_candidate_is_rejected(name: str, tmp_path: Path, walls: Walls) -> None:
    kernel, entry_point, code = WRONG[name]
    verdict = _examined(kernel, entry_point, tmp_path).verdict
    assert isinstance(verdict, Rejected), name
    assert verdict.reason.code == code
    if name == "other names":
        assert "linear.weight" in verdict.reason.message
