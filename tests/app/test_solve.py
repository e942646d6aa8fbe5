"""forge agent solve: a scripted model writes the kernel of a module's part, and the composed whole is judged."""

import re
from pathlib import Path

import pytest

from forge.app.workspace import Workspace
from forge.events import CandidateVerified, KernelPromoted, PromotionDenied, TaskCreated
from forge.events.module import ModuleComposed, ModuleRouted
from tests.app.model_server import Say, serving
from tests.cli.asking import ask, ledger_stands
from tests.lab.parts.modules import MODULES

KERNEL = '''"""So slow that no noise makes it worth a second attempt or a confirmation."""
import ctypes
from pathlib import Path

import torch

CPP_SOURCE = r"""
#include <cmath>
#include <cstdint>

static float value(const float* x, const float* w, float b, int64_t k) {
    volatile double slowed = 0;
    for (int i = 0; i < 500; ++i) slowed = slowed + x[0];
    double sum = b;
    for (int64_t i = 0; i < k; ++i) sum += static_cast<double>(x[i]) * w[i];
    return static_cast<float>(std::tanh(sum));
}

extern "C" void layer(const float* x, const float* w, const float* b, float* y, int64_t n, int64_t k, int64_t m) {
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < m; ++j) y[i * m + j] = value(x + i * k, w + j * k, b[j], k);
}
"""

_layer = ctypes.CDLL(str(Path(__file__).with_name("libkernel.so"))).layer
_layer.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_int64] * 3
_layer.restype = None


def kernel(in_0, in_1, in_2):
    y = torch.empty(in_0.shape[0], in_1.shape[0], dtype=in_0.dtype)
    sizes = (in_0.shape[0], in_0.shape[1], in_1.shape[0])
    _layer(in_0.data_ptr(), in_1.data_ptr(), in_2.data_ptr(), y.data_ptr(), *sizes)
    return y
'''


@pytest.mark.slow(first=True)
@pytest.mark.usefixtures("walls", "short_series", "no_shapes", "short_pairs")
def test_a_module_is_solved_by_the_kernel_of_its_part_and_judged_as_a_whole(empty: Path, tmp_path: Path) -> None:
    with (empty / "policy.toml").open("a") as policy:
        policy.write("sanitizer = false\n")
    module = tmp_path / "tower.py"
    module.write_text(MODULES["shared_weights"][0])
    answer = Say(f"HYPOTHESIS: one loop\n```python kernel.py\n{KERNEL}```")
    with serving(answer, *[Say("I have no better idea.")] * 20) as server:
        found = ask(
            *("agent", "solve", module, "--author", "model", "--model", "openai:m", "--base-url", f"{server.url}/v1"),
            *("--price", "openai:m=0,0", "--tokens", 10**9, "--set", "passes=functional", "--json", "--home", empty),
        )
    document = found.document
    assert document is not None
    assert document["routed"]["route"] == "extract"
    ((part,),) = (document["routed"]["parts"],)
    assert (part["count"], part["flops_share"], part["bytes_share"]) == (5, 1, 1)
    assert document["composed"] is not None, found
    assert (document["composed"]["flops_share"], document["composed"]["left"]) == (1, [])
    judged = document["judged"]
    assert judged["verdict"]["verdict"] == "accepted" or judged["verdict"]["reason"]["code"] not in (
        *("COMPILE_ERROR", "RUNTIME_ERROR", "INCORRECT_NUMERICAL", "BAD_SUBMISSION", "STATIC_POLICY", "FALLBACK"),
    ), judged
    with Workspace.open(empty) as workspace:
        events = [one.event for one in workspace.ledger.read()]
        whole, child = [one.task_id for one in events if isinstance(one, TaskCreated)]
        assert document["task_id"] == whole
        assert next(one.reason for one in events if isinstance(one, ModuleRouted)) == "several_parts"
        (composed,) = [one for one in events if isinstance(one, ModuleComposed)]
        verified = [one for one in events if isinstance(one, CandidateVerified)]
        assert [one.task_id for one in verified][:2] == [child, whole], "both passed every gate"
        assert composed.run_id == verified[1].run_id
        decided = [one for one in events if isinstance(one, KernelPromoted | PromotionDenied)]
        assert {one.task_id for one in decided} <= {whole, child}
        files = workspace.find_run(composed.run_id)
        assert files.submitted is not None
        text = next(
            workspace.blobs.get(one.sha256).decode()
            for one in files.submitted.event.files.files
            if one.path == "kernel.py"
        )
    assert len(re.findall(r"p0_kernel\(g_", text)) == 5, "one kernel, five places"
    assert ledger_stands(empty)


def test_a_file_without_a_module_and_an_author_that_works_for_one_task_are_refused(
    empty: Path, tmp_path: Path
) -> None:
    (tmp_path / "none.py").write_text("x = 1\n")
    (tmp_path / "some.py").write_text(MODULES["mlp"][0])
    for file, author, why in (
        ("none.py", "command", "has no class Model"),
        ("some.py", "search", "can't work on parts of a module"),
        ("some.py", "person", "expected model or command"),
        ("some.py", "model", "author 'model': expected --model"),
        ("some.py", "command", "author 'command': expected --agent-cmd"),
    ):
        found = ask("agent", "solve", tmp_path / file, "--author", author, "--home", empty)
        assert found.status == 2
        assert why in found.error
        assert found.last == "try: forge agent solve --help"
    with Workspace.open(empty) as workspace:
        assert not any(isinstance(one.event, TaskCreated) for one in workspace.ledger.read())
