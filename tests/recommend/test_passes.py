"""What a pass can do to an answer: annotate it. Hostile ones try the rest."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forge.recommend import Annotation, KernelOptimizationMetadata, Recommender, Request
from forge.recommend.request import Constraints

REQUEST = Request(model="llama3.1-8b", constraints=Constraints(gpus=("h200", "l40s"), max_gpus=2))
PLAIN = Recommender(optimization_passes=()).recommend(REQUEST)
ANNOTATED = {"kernel_optimizations", "notes"}
KERNEL = KernelOptimizationMetadata(
    kernel_id="triton_rmsnorm_h200_bf16_b16_h4096_v1",
    op="rmsnorm",
    language="triton",
    gpu="h200",
    dtype="bf16",
    speedup=1.5,
    speedup_low=1.4,
    speedup_high=1.6,
    baseline="compile",
    shape={"batch": 16, "hidden_size": 4096},
    model_shape={"batch": 16, "hidden_size": 4096},
    match="exact",
    octaves=0.0,
    verified_seq=1,
    benchmark_seq=2,
    promoted_seq=3,
)


class Pass:
    """One that does what it is told."""

    def __init__(self, annotate, name="hostile"):
        self.act, self.name = annotate, name

    def annotate(self, request, plans):
        return self.act(request, plans)


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("even telling it fails")

    args = property(lambda _: 1 / 0)


class Nameless(Pass):
    name = property(lambda _: 1 / 0, lambda *_: None)


class Better(Annotation):
    """A subclass with a will of its own."""

    ttft_ms: float = 0.0


def overwrite(request, plans):
    for plan in plans:
        plan.__dict__.update(rank=1, explanation="best of all", is_recommended=True, price_per_hour=0.01)
        plan.ttft_ms.__dict__["value"] = 0.001
        plan.scores.__dict__["weighted_total"] = 1.0
    request.constraints.__dict__["gpus"] = ("l4",)
    return [Annotation(rank=plan.rank) for plan in plans]


def overwrite_after(request, plans):
    """Keeps hold of what it returns, and changes it later."""
    said = Annotation(rank=1, kernel_optimizations=(KERNEL.model_copy(deep=True),))
    said.kernel_optimizations[0].__dict__["applied"] = True
    return [said]


def raising(error):
    def act(request, plans):
        raise error

    return act


FAILING = {
    "raises": raising(ValueError("no")),
    "raises what can't be told": raising(Unspeakable()),
    "ends the program": raising(SystemExit(0)),
    "recurses for ever": lambda request, plans: FAILING["recurses for ever"](request, plans),
    "sets a frozen field": lambda _, plans: setattr(plans[0], "rank", 7),
    "returns nothing": lambda *_: None,
    "returns a number": lambda *_: 42,
    "returns the plans": lambda _, plans: plans,
    "returns dictionaries": lambda *_: [{"rank": 1, "ttft_ms": 0}],
    "returns a subclass": lambda *_: [Better(rank=1)],
    "annotates a rank that isn't there": lambda *_: [Annotation(rank=99)],
    "claims to have applied a kernel": overwrite_after,
    "makes a kernel without validation": lambda *_: [
        Annotation.model_construct(rank=1, kernel_optimizations=(KernelOptimizationMetadata.model_construct(),))
    ],
    "attaches no kernel at all": lambda *_: [
        Annotation.model_construct(rank=1, kernel_optimizations=("faster",), notes=())
    ],
    "claims a level above the operation": lambda *_: [
        Annotation.model_construct(
            rank=1,
            kernel_optimizations=(KERNEL.model_copy(update={"evidence_level": "endpoint_level"}),),
            notes=(),
        )
    ],
}
QUIET = {
    "overwrites everything": overwrite,
    "annotates": lambda *_: [Annotation(rank=2, kernel_optimizations=(KERNEL,), notes=("look",))],
    "says nothing": lambda *_: [],
}


def without_annotations(answer):
    return [plan.model_dump(exclude=ANNOTATED) for plan in answer.plans]


@settings(max_examples=40)
@given(st.lists(st.sampled_from(sorted(FAILING) + sorted(QUIET)), max_size=5))
def test_a_pass_can_not_change_latency_throughput_cost_score_or_rank(names) -> None:
    acts = [{**FAILING, **QUIET}[name] for name in names]
    answer = Recommender(optimization_passes=[Pass(act) for act in acts]).recommend(REQUEST)
    assert without_annotations(answer) == without_annotations(PLAIN)
    assert answer.model_dump(exclude={"recommended", "alternatives"}) == PLAIN.model_dump(
        exclude={"recommended", "alternatives"}
    )
    assert all(one.applied is False for plan in answer.plans for one in plan.kernel_optimizations)


@pytest.mark.parametrize("name", FAILING)
def test_a_pass_that_fails_is_told_in_each_plan_and_attaches_nothing(name) -> None:
    answer = Recommender(optimization_passes=[Pass(FAILING[name])]).recommend(REQUEST)
    for plan in answer.plans:
        (note,) = plan.notes
        assert note.startswith("optimization pass 1 failed and was left out")
        assert plan.kernel_optimizations == ()


def test_a_pass_that_can_not_say_its_name_is_left_out() -> None:
    answer = Recommender(optimization_passes=[Nameless(QUIET["annotates"])]).recommend(REQUEST)
    assert "failed" in answer.plans[0].notes[0]


def test_a_failing_pass_leaves_the_others_their_say() -> None:
    passes = [Pass(FAILING["raises"]), Pass(QUIET["annotates"], name="kernels")]
    second = Recommender(optimization_passes=passes).recommend(REQUEST).plans[1]
    assert second.notes == ("optimization pass 1 failed and was left out: ValueError no", "kernels: look")
    assert second.kernel_optimizations == (KERNEL,)
    assert (KERNEL.available, KERNEL.applied) == (True, False)
    assert (KERNEL.evidence_level, KERNEL.benchmark_scope) == ("op_level", "microbenchmark")
