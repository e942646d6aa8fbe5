"""The brief: everything an author needs, nothing left unrendered, nothing that is held out."""

import json

import pytest

from forge.domain.candidate import REQUIRED_FILES
from forge.domain.digest import sha256
from forge.domain.policy import Policy
from forge.domain.tensors import DTYPES, TORCH_NAMES
from forge.events import PromptRendered
from forge.operations import OPERATIONS
from forge.pipeline.plan import accepted, plan
from forge.pipeline.prompt import render
from tests.pipeline.making import POLICY, made
from tests.pipeline.test_plan import FAILED, SLOTS


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("op", "language", "gpu"), SLOTS)
def test_the_brief_says_what_is_wanted(op: str, language: str, gpu: str, dtype: str) -> None:
    task = made(op=op, language=language, gpu=gpu, dtype=dtype, constraints={"note": "no | pipes {{ here }}"})
    skills, _ = plan(task, run_id="r", earlier_experiments=0)
    outcome = render(task, run_id="r", skills=skills, policy=POLICY)
    text = outcome.files["agent_prompt.md"].decode()
    assert f"`{OPERATIONS[op].signature}`" in text
    assert f"| element type | {dtype} |" in text
    assert f"| shape | {', '.join(f'{axis} = {size}' for axis, size in sorted(task.shape.items()))} |" in text
    for spec in (*OPERATIONS[op].inputs, *OPERATIONS[op].outputs):
        assert spec.element is None or f"torch.{TORCH_NAMES[spec.element]}" in text
    assert f"| language | {language} |" in text
    for name in REQUIRED_FILES:
        assert f"`{name}`" in text
    for skill in skills:
        assert f"<!-- skill: {skill.id} -->" in text
    assert f"def {op}(" in text
    plain = text.replace("{{ here }}", "")
    assert "{{" not in plain
    assert "{%" not in plain
    assert "Undefined" not in plain
    (event,) = outcome.events
    assert isinstance(event, PromptRendered)
    assert event.rendered_sha256 == sha256(outcome.files["agent_prompt.md"])
    assert outcome.blobs == (outcome.files["agent_prompt.md"],)
    assert render(task, run_id="r", skills=skills, policy=POLICY) == outcome


def test_the_brief_holds_the_schema_that_metadata_must_follow() -> None:
    task = made()
    outcome = render(task, run_id="r", skills=(), policy=POLICY)
    text = outcome.files["agent_prompt.md"].decode()
    schema = json.loads(text.split("```json\n", 1)[1].split("```", 1)[0])
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == {"name", "op", "language"}


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
    tried = FAILED.model_copy(update={"hypothesis": "two {{ rows }} per warp", "speedup": 0.5})
    skills, outcome = plan(task, run_id="r", earlier_experiments=0, earlier=(tried,))
    found = accepted(outcome).triage
    text = render(task, run_id="r", skills=skills, policy=POLICY, triage=found).files["agent_prompt.md"].decode()
    assert "flops per byte; arithmetic is the limit above 13.96 |" in text
    assert "| floor | 6.992 us at the data sheet's bandwidth" in text
    assert "| bound by | memory, most likely" in text
    row = f"| `{FAILED.family}` | rejected: INCORRECT_NUMERICAL | 0.50x | two {{{{ rows }}}} per warp |"
    assert row in text.splitlines()
    assert text.index("## Tried before") < text.index("# Reference material") < text.index(f"skill: {skills[0].id}")


def test_the_brief_without_earlier_experiments_has_no_empty_table() -> None:
    text = render(made(), run_id="r", skills=(), policy=POLICY).files["agent_prompt.md"].decode()
    assert "Tried before" not in text
    assert "Reference material" not in text


def test_the_brief_keeps_the_held_out_shapes_to_itself() -> None:
    task = made(shape="batch=4,hidden_size=64")
    text = render(task, run_id="r", skills=(), policy=POLICY).files["agent_prompt.md"].decode()
    assert task.held_out_sha256 not in text
