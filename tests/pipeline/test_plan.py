"""The plan: triage first, hygiene always, three to five skills with reasons, the same for the same task."""

import itertools
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.domain.digest import sha256
from forge.domain.evidence import Interval
from forge.domain.tensors import DTYPES
from forge.errors import UsageError
from forge.events import LessonProposed, PlanAccepted
from forge.events.plan import BestKernel, EarlierExperiment
from forge.languages import LANGUAGES
from forge.operations import OPERATIONS
from forge.pipeline.lesson import AMENDED
from forge.pipeline.plan import accepted, choose, concepts_of, plan, planned
from forge.pipeline.skill_package import PACKAGE
from forge.pipeline.skills import embedded_skills
from forge.pipeline.task_facts import bottleneck, triage
from tests.pipeline.making import made
from tests.pipeline.test_skill_package import install

HYGIENE = {"patterns.boundary-conditions", "patterns.test-plan"}
PROCESSORS = {"cpu": "cpu", "cuda": "h200"}
SLOTS = [
    (op, name, PROCESSORS[platform])
    for op, (name, language) in itertools.product(OPERATIONS, LANGUAGES.items())
    for platform in (*language.stands_in_on, *language.times_on)
]
SKILLS = embedded_skills()
FAILED = EarlierExperiment(
    run_id="r0",
    family="cuda_rmsnorm_h200_bf16_b4_h64",
    ended="incorrect",
    reason="INCORRECT_NUMERICAL",
    layer="L3",
    axis="indexing",
    closed_seq=7,
)
BEST = BestKernel(
    kernel_id="cuda_rmsnorm_h200_bf16_b2048_h4096_v2",
    candidate="c" * 64,
    language="cuda",
    same_shape=True,
    speedup=Interval(ratio=1.5, low=1.4, high=1.6),
    baseline="compile",
    median_us=8.2,
    floor_fraction=0.85,
    promoted_seq=40,
    benchmark_seq=38,
)


def plan_of(**changes: object) -> PlanAccepted:
    return accepted(plan(made(**changes), run_id="r", earlier_experiments=0)[1])


@pytest.mark.parametrize(("op", "language", "gpu"), SLOTS)
def test_every_plan_has_hygiene_a_guide_and_a_playbook(op: str, language: str, gpu: str) -> None:
    for dtype in DTYPES:
        task = made(op=op, language=language, gpu=gpu, dtype=dtype)
        skills, outcome = plan(task, run_id="r", earlier_experiments=2)
        event = accepted(outcome)
        assert 3 <= len(skills) <= 5
        assert len({skill.id for skill in skills}) == len(skills)
        assert {skill.id for skill in skills[:2]} == HYGIENE
        assert all(skill.fits(language=language, platform=task.target.platform) for skill in skills)
        guide, playbook = skills[2:4]
        assert guide.front.category == "operation"
        assert (OPERATIONS[op].guide or op) in guide.front.tags
        assert playbook.id == f"playbook.{language}"
        assert [one.id for one in event.skills] == [skill.id for skill in skills]
        assert all(one.why for one in event.skills)
        assert event.earlier_experiments == 2
        assert plan(task, run_id="r", earlier_experiments=2) == (skills, outcome)


@pytest.mark.parametrize(
    ("op", "guide", "technique"),
    [
        ("fused_add_rmsnorm", "op.norms", "patterns.fuse-elementwise"),
        ("softmax", "op.softmax", "patterns.numerical-stability"),
        ("quantize_fp8", "op.quantise", "patterns.quantisation"),
        ("dequant_int4", "op.dequantise", "patterns.quantisation"),
        ("topk_softmax", "op.topk", "patterns.reductions"),
    ],
)
def test_a_plan_is_what_an_expert_would_hand_out(op: str, guide: str, technique: str) -> None:
    for language in ("cuda", "triton"):
        ids = [one.id for one in plan_of(op=op, language=language, gpu="h200", dtype="bf16").skills]
        assert ids[2:] == [guide, f"playbook.{language}", technique]


@pytest.mark.slow
@given(order=st.permutations(range(len(SKILLS))), slot=st.sampled_from(SLOTS))
def test_the_choice_does_not_depend_on_the_order_of_the_library(order: list[int], slot: tuple[str, str, str]) -> None:
    op, language, gpu = slot
    task = made(op=op, language=language, gpu=gpu)
    found = triage(task, ())
    concepts = concepts_of(task, bottleneck(found), found)
    shuffled = choose([SKILLS[place] for place in order], concepts, task)
    assert shuffled == choose(SKILLS, concepts, task)


def test_every_skill_of_a_plan_is_named_by_its_files_bytes() -> None:
    folder, playbook = Path(__file__).parents[2] / "forge" / "skills", LANGUAGES["triton"].playbook_file
    chosen = plan_of(gpu="h200", language="triton").skills
    assert "playbook.triton" in {one.id for one in chosen}
    for one in chosen:
        path = playbook if one.id == "playbook.triton" else folder / f"{one.id}.md"
        assert one.sha256 == sha256(path.read_bytes())


@pytest.mark.parametrize(
    ("gpu", "language", "shape", "prior"),
    [
        ("cpu", "torch", "batch=1,hidden_size=64", "launch"),
        ("cpu", "torch", "batch=2048,hidden_size=4096", "memory"),
        ("h200", "cuda", "batch=64,hidden_size=4096", "launch"),
        ("h200", "cuda", "batch=2048,hidden_size=4096", "memory"),
        ("l4", "cuda", "batch=64,hidden_size=4096", "memory"),
    ],
)
def test_the_prior_follows_from_the_traffic_and_the_processor(
    gpu: str, language: str, shape: str, prior: str
) -> None:
    assert plan_of(gpu=gpu, language=language, shape=shape).bottleneck_prior == prior


def test_a_large_product_is_bound_by_arithmetic_and_a_skinny_one_by_memory() -> None:
    if "matmul" not in OPERATIONS:
        pytest.skip("the catalogue has no product of matrices")
    large, skinny = "m=2048,n=2048,k=2048", "m=1,n=4096,k=4096"
    assert plan_of(op="matmul", gpu="h200", language="cuda", dtype="bf16", shape=large).bottleneck_prior == "compute"
    assert plan_of(op="matmul", gpu="h200", language="cuda", dtype="bf16", shape=skinny).bottleneck_prior == "memory"


def test_triage_is_recorded_with_the_numbers_behind_it() -> None:
    found = plan_of(gpu="h200", language="cuda", dtype="bf16", shape="batch=2048,hidden_size=4096").triage
    assert found is not None
    assert found.implementation == "cuda"
    assert found.bytes_moved == (2 * 2048 * 4096 + 4096) * 2
    assert found.floor_us == pytest.approx(found.bytes_moved / 4.8e12 * 1e6, abs=1e-3)
    assert found.ridge == pytest.approx(67.0e12 / 4.8e12, abs=0.01)


def test_what_failed_before_is_quoted_and_asks_for_its_skill() -> None:
    task = made(op="rope", language="cuda", gpu="h200")
    before = accepted(plan(task, run_id="r", earlier_experiments=0)[1])
    after = accepted(plan(task, run_id="r", earlier_experiments=1, earlier=(FAILED,))[1])
    assert after.triage is not None
    assert after.triage.earlier == (FAILED,)
    assert "patterns.numerical-stability" not in {one.id for one in before.skills}
    assert "patterns.numerical-stability" in {one.id for one in after.skills}


def test_a_plan_says_that_the_package_is_absent(tmp_path: Path) -> None:
    event = accepted(plan(made(), run_id="r", earlier_experiments=0, home=tmp_path)[1])
    assert event.libraries is not None
    assert {(one.provider, one.state) for one in event.libraries} == {("embedded", "read"), (PACKAGE, "absent")}
    assert {one.provider for one in event.skills} == {"embedded"}


def test_the_packages_skills_compete_and_hygiene_stays(tmp_path: Path) -> None:
    install(tmp_path, id="inference.write-triton-rmsnorm-kernel", tags=["rmsnorm"], summary="RMSNorm rows in Triton")
    task = made(op="rmsnorm", language="triton", gpu="h200")
    skills, outcome = plan(task, run_id="r", earlier_experiments=0, home=tmp_path)
    event = accepted(outcome)
    assert {skill.id for skill in skills[:2]} == HYGIENE
    assert [skill.id for skill in skills[2:]] == [
        "op.norms",
        "playbook.triton",
        "inference.write-triton-rmsnorm-kernel",
    ]
    assert event.skills[4].provider == f"{PACKAGE}@0.2.0"
    other = made(op="rmsnorm", language="cuda", gpu="h200")
    assert {one.provider for one in plan(other, run_id="r", earlier_experiments=0, home=tmp_path)[0]} == {"embedded"}


def test_a_recorded_plan_is_found_again_by_digest_or_refused(tmp_path: Path) -> None:
    skills, outcome = plan(made(), run_id="r", earlier_experiments=0, home=tmp_path)
    event = accepted(outcome)
    assert planned(event, home=tmp_path) == skills
    changed = event.skills[0].model_copy(update={"sha256": "0" * 64})
    with pytest.raises(UsageError, match="isn't what it was"):
        planned(event.model_copy(update={"skills": (changed,)}), home=tmp_path)


def test_an_accepted_lesson_makes_another_version_of_its_playbook() -> None:
    task = made(op="rmsnorm", language="cuda", gpu="h200")
    taught = LessonProposed(
        lesson_id="rmsnorm-1",
        op="rmsnorm",
        playbook="playbook.cuda",
        ended="improved",
        text="Two rows in flight ``` pay.",
        experiment_seqs=(12, 15),
    )
    before = accepted(plan(task, run_id="r", earlier_experiments=0)[1])
    lessons = {"playbook.cuda": (taught,)}
    skills, outcome = plan(task, run_id="r", earlier_experiments=0, lessons=lessons)
    after = accepted(outcome)
    changed = [new for old, new in zip(before.skills, after.skills, strict=True) if old.sha256 != new.sha256]
    assert [(one.id, one.provider) for one in changed] == [("playbook.cuda", AMENDED)]
    (blob,) = outcome.blobs
    assert sha256(blob) == changed[0].sha256
    text = blob.decode()
    assert text.endswith("- `rmsnorm`, improved (n = 2; 12, 15): Two rows in flight ''' pay.\n")
    assert planned(after, home=None, lessons=lessons) == skills
    with pytest.raises(UsageError, match="isn't what it was"):
        planned(after, home=None)


def test_planning_and_rendering_import_no_torch() -> None:
    program = """
import sys
from tests.pipeline.making import POLICY, made
from forge.pipeline.plan import accepted, plan
from forge.pipeline.prompt import render

task = made(gpu="h200", language="triton")
skills, outcome = plan(task, run_id="r", earlier_experiments=0)
render(task, run_id="r", skills=skills, policy=POLICY, triage=accepted(outcome).triage)
sys.exit("torch" in sys.modules)
"""
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", program], cwd=root, check=False).returncode == 0
