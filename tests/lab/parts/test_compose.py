"""Kernels of parts are put together by their syntax: module-level names and C++ symbols get a prefix."""

import ast

import pytest

from forge.lab.parts.compose import CannotCompose, PartKernel, composed_kernel
from forge.lab.parts.groups import require_parts
from tests.lab.parts.test_take_apart import SMALL

MODULE = "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
PLAIN = '''
"""A kernel."""
import math

BLOCK = 64
_cache = {}


def helper(value, BLOCK):
    return value * BLOCK


def kernel(*operands):
    global _cache
    scale = (lambda BLOCK: BLOCK)(BLOCK)
    return helper(operands[0], BLOCK=BLOCK) + math.pi * scale
'''
CPP = '''
import ctypes

SOURCE = r"""
#include <cmath>
static float two() { return 2; }
extern "C" void run(float* x) { *x = two(); }
extern "C" int64_t other(const float* x) { return 1; }
"""
_run = ctypes.CDLL("libkernel.so").run
_other = getattr(ctypes.CDLL("libkernel.so"), "other")


def kernel(x, y):
    _run(x)
    return y
'''


def composed(*kernels: PartKernel) -> tuple[str, bool]:
    parts = require_parts(SMALL, [("a", "b"), ("c", "d")])
    return composed_kernel(MODULE, SMALL, parts, dict(enumerate(kernels)))


def test_names_get_a_prefix_and_parameters_keep_theirs() -> None:
    text, has_cpp = composed(PartKernel(PLAIN, "kernel", None))
    ast.parse(text)
    assert not has_cpp
    assert "p0_BLOCK = 64" in text
    assert "def p0_helper(value, BLOCK):\n    return value * BLOCK" in text
    assert "(lambda BLOCK: BLOCK)(p0_BLOCK)" in text
    assert "p0_helper(operands[0], BLOCK=p0_BLOCK) + math.pi * scale" in text
    assert "global p0__cache" in text
    assert "_part_1(" in text, "the part without a kernel runs as its reference"
    assert text.count("import math") == 1


def test_two_cpp_texts_become_one_and_equal_kernels_stand_once() -> None:
    first, second = PartKernel(CPP, "kernel", "SOURCE"), PartKernel(CPP + "\n# another\n", "kernel", "SOURCE")
    text, has_cpp = composed(first, second)
    assert has_cpp
    source = text.split('CPP_SOURCE = r"""')[1].split('"""')[0]
    assert source.count("#include <cmath>") == 1
    assert "namespace p0 {" in source
    assert 'extern "C" void p1_run(float* x)' in source
    assert 'extern "C" int64_t p1_other(' in source
    assert "ctypes.CDLL('libkernel.so').p1_run" in text
    assert "'p1_other'" in text
    assert composed(first, first)[0].count("namespace p") == 1


def test_one_text_with_two_functions_gives_each_part_its_own() -> None:
    text = "def first(x, y):\n    return x\n\n\ndef second(x):\n    return x\n"
    made, _ = composed(PartKernel(text, "first", None), PartKernel(text, "second", None))
    assert made.count("def p0_second(") == 1
    assert "p0_first(g_" in made
    assert "p0_second(g_" in made


@pytest.mark.parametrize(
    ("kernel", "why"),
    [
        (PartKernel("def kernel(:", "kernel", None), "can't be parsed"),
        (PartKernel("SOURCE = ''.join(['a'])\ndef kernel(): ...", "kernel", "SOURCE"), "no plain text"),
        (PartKernel('SOURCE = \'char c = """x""";\'\ndef kernel(): ...', "kernel", "SOURCE"), "three double quotes"),
    ],
)
def test_a_text_that_cannot_stand_beside_others_is_named(kernel: PartKernel, why: str) -> None:
    with pytest.raises(CannotCompose, match=why):
        composed(kernel)


def test_imports_from_the_future_come_first_wherever_they_stood() -> None:
    parts = require_parts(SMALL, [("a", "b"), ("c", "d")])
    kernel = PartKernel("from __future__ import division\nfrom Alpha import beta\n" + PLAIN, "kernel", None)
    module = '"""A module."""\n\nfrom __future__ import (\n    annotations,\n)\n\n' + MODULE
    text, _ = composed_kernel(module, SMALL, parts, {0: kernel})
    compile(text, "kernel.py", "exec")
    assert text.count("from __future__") == 2


def test_results_are_returned_in_the_modules_form() -> None:
    parts = require_parts(SMALL, [("a", "b"), ("c", "d")])
    kernels = {0: PartKernel(PLAIN, "kernel", None)}
    plain, _ = composed_kernel(MODULE, SMALL, parts, kernels)
    (result,) = [line.removeprefix("    return ") for line in plain.splitlines() if line.startswith("    return g_")]
    nested, _ = composed_kernel(MODULE, SMALL, parts, kernels, returned="({'y': ...}, )")
    assert f"    return ({{'y': {result}}}, )" in nested
    with pytest.raises(CannotCompose, match="the module returns 2"):
        composed_kernel(MODULE, SMALL, parts, kernels, returned="(..., ..., )")
