"""The brief of an own operation: its real bytes, values, sizes and bound, and skills that fit what its file calls."""

import random

import pytest

from forge.domain.digest import sha256
from forge.domain.evidence import Admission
from forge.domain.own_operation import Among, Constant, Contract, Generated, Integers, Local, Normal, Operand, Result
from forge.domain.source_syntax import syntax_sha256
from forge.domain.task import LanguageName
from forge.lab.reference.infer import Inferred
from forge.operations.own import make_known
from forge.pipeline.called_names import called_names
from forge.pipeline.create import parse_terms
from forge.pipeline.plan import accepted, plan
from forge.pipeline.prompt import render
from forge.pipeline.reference import create_own
from tests.lab.reference.references import square_contract
from tests.pipeline.making import POLICY, request

POOL = b"""import torch

def masked_mean_pool(hidden, lengths, scale=2):
    mask = torch.arange(hidden.shape[1])[None, :] < lengths[:, None]
    return (hidden * mask[:, :, None]).sum(dim=1) / lengths[:, None]

def get_inputs():
    return [torch.randn(16, 128, 384), torch.randint(1, 129, (16,))]
"""
CONTRACT = square_contract(8).model_copy(
    update={
        "slug": "masked_mean_pool",
        "entry": "masked_mean_pool",
        "batch": 16,
        "varies": True,
        "kinds": ("large", "small"),
        "arguments": (
            Operand(
                name="hidden", element=None, sizes=(16, 128, 384), batched=True, drawn=Normal(mean=0, deviation=1)
            ),
            Operand(
                name="lengths",
                element="int64",
                sizes=(16,),
                batched=True,
                drawn=Integers(low=1, high=128),
                source="planted",
            ),
            Constant(name="scale", literal="2"),
        ),
        "results": (Result(element=None, sizes=(16, 384), batched=True, error=2.0**-20),),
    }
)


def briefed(
    contract: Contract = CONTRACT, source: bytes = POOL, language: LanguageName = "cpp"
) -> tuple[str, dict[str, str]]:
    """The brief, and the chosen skills with the reasons."""
    named = contract.model_copy(update={"source_sha256": sha256(source), "syntax_sha256": syntax_sha256(source)})
    inferred = Inferred(named, source, Admission(mutants=9, killed=9, honest=2), ())
    task, _ = create_own(
        inferred, parse_terms(request(language=language), POLICY), policy=POLICY, rng=random.Random(1)
    )
    make_known(inferred.operation)
    skills, outcome = plan(task, run_id="r", earlier_experiments=0)
    planned = accepted(outcome)
    rendered = render(
        task, run_id="r", skills=skills, policy=POLICY, triage=planned.triage, machine=(("caches", "L1 48KiB"),)
    )
    return rendered.files["agent_prompt.md"].decode(), {one.id: one.why for one in planned.skills}


def test_its_bytes_are_those_of_all_operands_and_it_is_not_called_bound_by_the_launch() -> None:
    text, _ = briefed()
    moved = 4 * 16 * 128 * 384 + 8 * 16 + 4 * 16 * 384
    assert f"| least traffic | {moved / 1e6:.3g} MB | all operands and results, once each" in text
    assert "Most likely bound by **memory**, by its bytes alone" in text
    assert "| arithmetic | not counted |" in text


def test_it_says_values_ranges_constants_and_which_sizes_vary() -> None:
    text, _ = briefed()
    assert "| `hidden` | batch, 128, 384 | 16 x 128 x 384 | torch.float32 | normal, mean 0, deviation 1 |" in text
    assert "whole numbers from 1 to 128, both asked; drawn by the file's get_inputs(), and its ends |" in text
    assert "Which sizes vary: `batch` takes other sizes too, down to 1; every other size is" in text
    assert "`scale = 2`" in text
    assert "of these further kinds: large, small. Not tested: NaN and infinities" in text
    assert "must be finite" not in text
    assert "Any size from 0 rows and 1 column upwards" not in text
    assert "- NaN and infinities are tested" not in text
    assert "name it `masked_mean_pool`, or set" in text
    assert "| caches | L1 48KiB |" in text


def test_it_says_where_answers_must_be_finite_and_no_more() -> None:
    text, _ = briefed(CONTRACT.model_copy(update={"finite_kinds": ("far", "overflowing")}))
    assert "At these kinds answers must be finite where the reference's are: far, overflowing. Not tested" in text


@pytest.mark.parametrize(
    ("drawn", "said"),
    [
        (Among(values=(0.0, 1.0)), "one of 0, 1 |"),
        (Generated(structure="each row sorted"), "each row sorted |"),
    ],
)
def test_other_families_are_said_too(drawn: Among | Generated, said: str) -> None:
    operand = Operand(name="x", element=None, sizes=(8, 8), drawn=drawn)
    text, _ = briefed(square_contract(8).model_copy(update={"arguments": (operand,), "varies": False}))
    assert said in text
    assert "`batch` is 1 in every call; every other size" in text


def test_the_bound_is_a_number() -> None:
    text, _ = briefed()
    assert "`output`: 1.19e-07 |y*| + 7.63e-06 rms(y*), or 4 times the reference's own error there" in text
    assert "docs/numerics.md" not in text
    narrow = square_contract(8, error=2.0**-20, local=Local(around="row", share=0.5, error=2.0**-22))
    text, _ = briefed(narrow)
    near = "1.91e-06 (|y*| + 0.5 times the root mean square of its row)"
    assert f"1.19e-07 |y*| + the smaller of 7.63e-06 rms(y*) and {near}" in text


def test_a_pooling_kernel_gets_no_guide_to_something_else() -> None:
    _, skills = briefed()
    assert not any(name.startswith("op.") for name in skills)
    assert "playbook.cpp" in skills


@pytest.mark.parametrize(
    ("body", "guide"),
    [
        (b"return torch.softmax(x, -1)", "op.softmax"),
        (b"return x @ x", "op.matmul"),
        (b"return torch.nn.functional.layer_norm(x, (8,))", "op.norms"),
        (b"return torch.nn.functional.scaled_dot_product_attention(x, x, x)", "op.attention"),
        (b"return torch.nn.functional.gelu(x)", "op.gated-activations"),
    ],
)
def test_the_guide_fits_what_the_reference_calls(body: bytes, guide: str) -> None:
    source = b"import torch\ndef kernel(x):\n    " + body + b"\ndef get_inputs():\n    return [torch.rand(8, 8)]\n"
    _, skills = briefed(square_contract(8), source, "torch")
    assert next(name for name in skills if name.startswith("op.")).startswith(guide)


def test_names_are_those_of_the_code_and_not_of_its_inputs() -> None:
    source = b"class Model(nn.Module):\n    def __init__(self):\n        self.norm = nn.LayerNorm(8)\n"
    assert called_names(source + b"def get_inputs():\n    return [torch.softmax(x)]\n") == ("layernorm",)
    assert called_names(b"def f(:") == ()


def test_it_has_a_complete_kernel_the_commands_and_a_refusal() -> None:
    text, _ = briefed()
    assert "## A complete kernel.py" in text
    assert "def kernel(*operands):" in text
    assert "forge check my-kernel/reference.py my-kernel/kernel.py" in text
    assert "forge pipeline cpp_own_masked_mean_pool_" in text
    assert "INCORRECT_NUMERICAL: y[0, 0] is" in text
