"""The files of a starting point compute where the task's kernel does: on its GPU, if it is for one."""

from typing import Any

import pytest
import torch

from forge.pipeline.starter import starter_files
from forge.pipeline.templates import environment

from .making import made

GPU = '"cuda" if torch.cuda.is_available() else "cpu"'


@pytest.mark.parametrize(
    ("task", "device"),
    [(made(), '"cpu"'), (made(language="triton", gpu="h200", dtype="bf16"), GPU)],
    ids=["on a processor", "on a GPU"],
)
def test_the_tests_operands_lie_where_the_kernel_runs(task: Any, device: str) -> None:
    assert f"\nDEVICE = {device}\n" in starter_files(task)["test_correctness.py"].decode()


@pytest.mark.parametrize("form", ["model", "function"])
def test_operands_of_a_reference_file_are_moved_there_however_nested(form: str) -> None:
    names = {"own": True, "form": form, "entry": "kernel", "base": "Model", "count": 1, "device": '"meta"'}
    names |= {"init": "[]", "init_named": "{}"}
    for template in ("starter_tests.py.j2", "starter_bench.py.j2"):
        text = environment().get_template(template).render(**names)
        assert "reference.get_inputs())\n" in text
        assert "drawn = on_device(drawn)" in text
        defined: dict[str, Any] = {"torch": torch}
        exec(
            text[text.index("DEVICE = ") : text.index("def ", text.index("def on_device") + 4)], defined
        )  # our own template
        moved = defined["on_device"]([torch.ones(2), (torch.ones(1), {"a": torch.ones(3)}), 7, "plain"])
        assert (moved[0].device.type, moved[1][0].device.type, moved[1][1]["a"].device.type) == ("meta",) * 3
        assert moved[2:] == [7, "plain"]
        assert form == "function" or ".to(DEVICE)" in text.partition("def made")[2]
