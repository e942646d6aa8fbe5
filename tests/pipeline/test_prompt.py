"""The brief: everything an author needs, nothing left unrendered, nothing that is held out."""

import json

import pytest

from forge.domain.candidate import Metadata
from forge.domain.candidate_files import REQUIRED_FILES
from forge.domain.digest import sha256
from forge.domain.policy import Policy
from forge.domain.tensors import DTYPES, TORCH_NAMES
from forge.events import PromptRendered
from forge.operations import OPERATIONS
from forge.pipeline.budget import DEFAULT_TOKENS, tokens_of
from forge.pipeline.plan import accepted, plan
from forge.pipeline.prompt import render
from tests.pipeline.making import POLICY, made
from tests.pipeline.test_plan import BEST, FAILED, SLOTS

SECTIONS = (
    *("Operation", "Target hardware", "Shapes and types", "Objective", "Constraints", "Required deliverables"),
    *("Correctness requirements", "Benchmark requirements", "Forbidden"),
)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("op", "language", "gpu"), SLOTS)
def test_the_brief_says_what_is_wanted(op: str, language: str, gpu: str, dtype: str) -> None:
    task = made(op=op, language=language, gpu=gpu, dtype=dtype, constraints={"note": "no | pipes {{ here }}"})
    skills, _ = plan(task, run_id="r", earlier_experiments=0)
    outcome = render(task, run_id="r", skills=skills, policy=POLICY)
    text = outcome.files["agent_prompt.md"].decode()
    assert f"`{OPERATIONS[op].signature}`" in text
    assert f"{', '.join(f'`{axis} = {size}`' for axis, size in sorted(task.shape.items()))} in {dtype}." in text
    for spec in (*OPERATIONS[op].inputs, *OPERATIONS[op].outputs):
        assert f"torch.{TORCH_NAMES[spec.element_type(task.dtype)]}" in text
    assert f"| language | {language}: " in text
    for name in REQUIRED_FILES:
        assert f"`{name}`" in text
    for skill in skills:
        assert f"\n## `{skill.id}`\n" in text
    for section in SECTIONS:
        assert text.count(f"\n## {section}\n") == 1
    assert f"def {op}(" in text
    assert "- note: no / pipes {{ here }}\n" in text
    plain = text.replace("{{ here }}", "")
    assert "{{" not in plain
    assert "{%" not in plain
    assert "Undefined" not in plain
    (event,) = outcome.events
    assert isinstance(event, PromptRendered)
    assert event.rendered_sha256 == sha256(outcome.files["agent_prompt.md"])
    assert outcome.blobs == (outcome.files["agent_prompt.md"],)
    assert render(task, run_id="r", skills=skills, policy=POLICY) == outcome


@pytest.mark.parametrize(("language", "gpu"), [("cuda", "h200"), ("cpp", "cpu"), ("triton", "h200")])
def test_the_brief_holds_the_schema_that_metadata_must_follow(language: str, gpu: str) -> None:
    outcome = render(made(language=language, gpu=gpu), run_id="r", skills=(), policy=POLICY)
    text = outcome.files["agent_prompt.md"].decode()
    schema = json.loads(text.split("````json\n", 1)[1].split("````", 1)[0])
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == {"name", "op", "language"}
    assert schema["properties"]["language"] == {"const": language}
    assert {"cpp", "cuda"} & set(schema["properties"]) == {language} - {"triton"}
    others = {name for name in Metadata.model_fields if name not in ("cpp", "cuda")}
    assert others <= set(schema["properties"])


def test_the_briefs_digests_tell_two_tasks_and_two_policies_apart() -> None:
    def event_of(policy: Policy, **changes: object) -> PromptRendered:
        (event,) = render(made(**changes), run_id="r", skills=(), policy=policy).events
        assert isinstance(event, PromptRendered)
        return event

    first, other = event_of(POLICY), event_of(POLICY, shape="batch=5,hidden_size=64")
    slower = event_of(POLICY.model_copy(update={"verify_limit_s": 33.0}))
    assert first.template_sha256 == other.template_sha256 == slower.template_sha256
    assert len({one.rendered_sha256 for one in (first, other, slower)}) == 3
    assert len({one.variables_sha256 for one in (first, other, slower)}) == 3


def test_the_brief_says_where_the_floor_lies_and_what_was_tried() -> None:
    task = made(gpu="h200", language="cuda", dtype="bf16", shape="batch=2048,hidden_size=4096")
    tried = FAILED.model_copy(
        update={"hypothesis": "two {{ rows }} per warp", "speedup": 0.5, "low": 0.4, "high": 0.6, "against": "parent"}
    )
    skills, outcome = plan(task, run_id="r", earlier_experiments=0, earlier=(tried,), best=BEST)
    found = accepted(outcome).triage
    text = render(task, run_id="r", skills=skills, policy=POLICY, triage=found).files["agent_prompt.md"].decode()
    assert "arithmetic is the limit above 13.96 (fp32 over memory bandwidth) |" in text
    assert "| time to move it | 6.99 us |" in text
    assert "Most likely bound by **memory**" in text
    row = (
        f"| 7 | `{FAILED.family}` | L3 indexing | incorrect (INCORRECT_NUMERICAL) | 0.50x (0.40 to 0.60) over parent "
        "| two {{ rows }} per warp |"
    )
    assert row in text.splitlines()
    assert (
        f"`{BEST.kernel_id}` (cuda), 1.50x over compile (1.40 to 1.60), 8.2 us a call, 85 % of the measured" in text
    )
    assert f'`"parents": ["{BEST.candidate}"]`' in text
    assert text.index("## What is known") < text.index("# Reference material") < text.index(f"`{skills[0].id}`")


def test_a_kernel_in_another_language_is_shown_and_isnt_called_a_baseline() -> None:
    task = made(gpu="h200", language="triton", dtype="bf16")
    skills, outcome = plan(task, run_id="r", earlier_experiments=0, best=BEST)
    found = accepted(outcome).triage
    text = render(task, run_id="r", skills=skills, policy=POLICY, triage=found).files["agent_prompt.md"].decode()
    assert BEST.kernel_id in text
    assert "no baseline of this task" in text
    assert '"parents": [' not in text


def test_the_brief_without_earlier_experiments_has_no_empty_table() -> None:
    text = render(made(), run_id="r", skills=(), policy=POLICY).files["agent_prompt.md"].decode()
    assert "hypothesis |" not in text
    assert "Reference material" not in text


@pytest.mark.parametrize("op", OPERATIONS)
def test_a_brief_is_within_its_budget_or_has_nothing_left_to_drop(op: str) -> None:
    task = made(op=op, gpu="h200", language="cuda", dtype="bf16")
    skills, outcome = plan(task, run_id="r", earlier_experiments=0, earlier=(FAILED, FAILED))
    triage = accepted(outcome).triage
    before: set[str] = set()
    for budget in (DEFAULT_TOKENS, 7000, 5000, 1000):
        (event,) = (
            rendered := render(task, run_id="r", skills=skills, policy=POLICY, triage=triage, budget_tokens=budget)
        ).events
        assert isinstance(event, PromptRendered)
        text = rendered.files["agent_prompt.md"].decode()
        assert event.tokens == tokens_of(text)
        assert event.tokens <= budget or len(event.left_out) == len(skills) + 2
        assert before <= set(event.left_out)
        before = set(event.left_out)
        for name in event.left_out:
            assert f"\n## `{name}`\n" not in text
            assert name in text.split("## Operation")[0]
        for section in SECTIONS:
            assert f"\n## {section}\n" in text
    assert event.left_out[0] == skills[4].id
    assert [*event.left_out[-3:]] == [skills[2].id, "experiment 7", "experiment 7"]


@pytest.mark.slow
def test_the_default_budget_leaves_nothing_of_the_embedded_library_out() -> None:
    for op, language, gpu in SLOTS:
        task = made(op=op, language=language, gpu=gpu)
        skills, _ = plan(task, run_id="r", earlier_experiments=0)
        (event,) = render(task, run_id="r", skills=skills, policy=POLICY).events
        assert isinstance(event, PromptRendered)
        assert event.left_out == ()


def test_the_brief_keeps_the_held_out_shapes_to_itself() -> None:
    task = made(shape="batch=4,hidden_size=64")
    text = render(task, run_id="r", skills=(), policy=POLICY).files["agent_prompt.md"].decode()
    assert task.held_out_sha256 not in text


def test_the_brief_says_that_rows_may_belong_to_no_group() -> None:
    task = made(op="grouped_matmul", language="triton", gpu="h200", shape="groups=3,k=64,n=32,tokens=40")
    text = render(task, run_id="r", skills=(), policy=POLICY).files["agent_prompt.md"].decode()
    assert "whole numbers that add up to tokens, in some calls to less; some are 0" in text
