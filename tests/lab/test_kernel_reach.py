"""Which kernels a source has, and which its entry point launches: a refusal needs a proof that it launches none."""

import ast

import pytest

from forge.domain.candidate import Metadata
from forge.lab.finding import Failed, Passed
from forge.lab.sources.screen import examine_sources
from forge.lab.triage import triage
from forge.languages import find_language

KERNEL = "import functools\nimport torch\nimport triton\n\n\n@triton.jit\ndef kernel(x):\n    pass\n\n\n"
LAUNCH = "def launch(x):\n    kernel[(1,)](x)\n    return x\n\n\n"
REGISTERED = {
    "a custom operator": "@torch.library.custom_op('a::b', mutates_args=())\n" + LAUNCH,
    "a custom operator of a helper": LAUNCH
    + "@torch.library.custom_op('a::b', mutates_args=())\ndef own(x):\n    return launch(x)\n",
    "an operator of a library": LAUNCH
    + "library = torch.library.Library('a', 'DEF')\nlibrary.impl('b', launch, 'CPU')\n",
    "a method of a registered class": LAUNCH
    + "@register('b')\nclass Own:\n    def run(self, x):\n        return launch(x)\n",
    "a table that a decorator fills": "@register('b')\n" + LAUNCH,
}
"""Sources in which the entry point finds the kernel by another name than its own, and no name leads there."""
ELSEWHERE = {
    "a function that nothing calls": LAUNCH,
    "a function that is only wrapped": "@torch.inference_mode()\n@functools.lru_cache(maxsize=None)\n" + LAUNCH,
    "a separate program": LAUNCH + "if __name__ == '__main__':\n    print(launch(1))\n",
}
"""Sources whose kernel nothing can find that the entry point mentions."""


def launches_no_kernel(source: str) -> bool:
    text = KERNEL + source + "\n\ndef f(x):\n    return torch.ops.a.b(x)\n"
    described = Metadata.model_validate({"name": "a", "op": "rmsnorm", "language": "triton"})
    language = find_language("triton")
    return triage(ast.parse(text), text, metadata=described, language=language, entry_point="f").launches_no_kernel


@pytest.mark.parametrize("how", REGISTERED)
def test_a_kernel_that_is_registered_may_be_launched(how: str) -> None:
    assert not launches_no_kernel(REGISTERED[how])


@pytest.mark.parametrize("where", ELSEWHERE)
def test_a_kernel_that_nothing_registers_is_never_launched(where: str) -> None:
    assert launches_no_kernel(ELSEWHERE[where])


PLAIN = "import triton\n\n\ndef body(x):\n    pass\n\n\n"
MADE = {
    "kernel = triton.jit(body)": Passed,
    "kernel = triton.autotune([], key=[])(triton.jit(body, do_not_specialize=['x']))": Passed,
    "kernel = body": Failed,
}


@pytest.mark.parametrize("made", MADE)
def test_a_kernel_may_be_compiled_by_a_call(made: str) -> None:
    text = PLAIN + made + "\n\n\ndef f(x):\n    kernel[(1,)](x)\n    return x\n"
    described = Metadata.model_validate({"name": "a", "op": "rmsnorm", "language": "triton"})
    screened = examine_sources(text, metadata=described, language=find_language("triton"), entry_point="f")
    assert isinstance(screened.finding, MADE[made])
