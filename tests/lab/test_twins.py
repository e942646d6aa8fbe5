"""Two candidates are one program exactly when they differ in nothing but comments, layout and docstrings."""

import warnings

from hypothesis import example, given
from hypothesis import strategies as st

from forge.domain.candidate import Metadata
from forge.domain.policy import Policy
from forge.lab.judge_version import gates_sha256
from forge.lab.sources.fingerprint import normalised_sha256

KERNEL = '''"""A docstring."""
import torch

X = "text"


def f(x):  # a comment
    """Another."""
    return x + 1
'''


def named(kernel: str, *, entry_point: str = "f", **described: object) -> str:
    fields = {"name": "a", "op": "rmsnorm", "language": "torch", **described}
    return normalised_sha256(kernel, metadata=Metadata.model_validate(fields), entry_point=entry_point)


def test_comments_layout_and_docstrings_make_no_difference() -> None:
    bare = "import torch\nX = 'text'\ndef f(x):\n  return (x\n    + 1)\n"
    assert named(KERNEL) == named(bare)
    assert named(KERNEL) == named(KERNEL, author="another", hypothesis="faster", name="b")


def test_anything_else_does() -> None:
    others = [
        KERNEL.replace("x + 1", "x + 2"),
        KERNEL.replace("x + 1", "x + 1.0"),
        KERNEL.replace("x + 1", "x - 1"),
        KERNEL.replace("x + 1", "x + True"),
        KERNEL.replace('"text"', '"text "'),
        KERNEL.replace('"text"', 'b"text"'),
        KERNEL.replace("def f(x)", "def f(y)"),
        KERNEL.replace("import torch", "import torch as t"),
        KERNEL + "y = 1\n",
        KERNEL.replace("def f(x)", "def f(x, *, y=1)"),
        KERNEL.replace("def f(x)", "def f(x, y=1)"),
    ]
    found = {named(one) for one in [KERNEL, *others]}
    assert len(found) == len(others) + 1
    assert named(KERNEL) != named(KERNEL, entry_point="X")
    assert named(KERNEL) != named(KERNEL, layouts=["expanded"])  # a refusal may be the claim's alone
    assert named(KERNEL) != named(KERNEL, language="cpp", cpp={"flags": ["-O3"]})
    assert named(KERNEL, language="cpp", cpp={"flags": ["-O3"]}) != named(
        KERNEL, language="cpp", cpp={"flags": ["-O2"]}
    )


def test_a_body_of_a_docstring_isnt_an_empty_one_elsewhere() -> None:
    assert named("def f(): 'a'\nx = 1") != named("def f(): 'a'; x = 1")


@given(st.text(max_size=200))
@example("x = 0x" + "f" * 20000)
@example("x=" + "+".join(["1"] * 900))
@example("\ud800")
@example("(" * 500)
def test_any_text_has_a_name(kernel: str) -> None:
    with warnings.catch_warnings(action="ignore"):
        assert named(kernel) == named(kernel)


def test_the_judges_version_follows_the_policy_and_nothing_that_changes_between_runs() -> None:
    assert gates_sha256(Policy()) == gates_sha256(Policy())
    assert gates_sha256(Policy()) != gates_sha256(Policy(tolerance_accumulate_multiple=3.0))
