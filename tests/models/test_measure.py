"""A whole model is measured with and without adopted kernels, and the result is recorded whatever it says."""

import random
from pathlib import Path

import pytest
import torch

from forge.app.models.measuring import GuestFacts, _evidence, _uses, compare
from forge.app.models.predicted_gain import FunctionShare, predicted_speedup
from forge.domain.model_measurement import ModelWorkload, parse_mode, parse_workload
from forge.domain.policy import Policy
from forge.errors import EnvironmentUnfit, UnknownName, UsageError
from forge.guest.load import load_module
from forge.lab.model_windows import ModelQuestion, ModelSamples, WindowPlan, measure_model
from forge.lookup import Evidence, Registry
from forge.operations import find_operation
from forge.sandbox.isolation_here import isolation
from tests.adopt.making import cpp_kernel, publish

SOURCE = Path(__file__).with_name("small_transformer.py").read_bytes()
MODELS = Path(__file__).parents[2] / "benchmarks" / "models"
DECODE = ModelWorkload(kind="decode", batch=4, context=8, tokens=1)
PLAN = WindowPlan(process_pairs=2, rounds=2, window_s=0.002, threads=1)


def question(registry: Path, source: bytes = SOURCE, **changes: object) -> ModelQuestion:
    fields = {"name": "small", "workload": DECODE, "modes": ("eager",), "seed": 1, "gpu": None}
    return ModelQuestion(source=source, registry=registry, **{**fields, **changes})


def measured(asked: ModelQuestion, plan: WindowPlan = PLAN) -> ModelSamples:
    return measure_model(asked, plan, policy=Policy(), isolation=isolation(), rng=random.Random(1))["eager"]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish(tmp_path_factory.mktemp("registry"), [cpp_kernel()])


def test_the_promoted_kernel_runs_in_the_model_and_gives_its_answers(registry):
    samples = measured(question(registry))
    facts = GuestFacts.model_validate(samples.untrusted_facts)
    evidence = _evidence(facts, Registry.open(registry))
    uses = _uses(facts, evidence)
    assert {(one.backend, one.kernel_id) for one in uses} == {("source", "cpp_fused_add_rmsnorm_cpu_fp32_v1")}
    assert facts.equal_tokens == 64
    assert facts.own_error == 0
    assert 0 < facts.adopted_error < 1e-4
    assert {side: [len(one) for one in times] for side, times in samples.times_ns.items()} == {
        side: [2, 2] for side in ("own", "adopted", "control")
    }
    found = compare(samples, facts, uses, mode="eager", evidence=evidence)
    assert 0 < found.replaced_share < 1
    assert [(one.op, one.calls) for one in facts.shares] == [("fused_add_rmsnorm", 4)]
    assert found.predicted > 1
    assert found.own_median_ns > 0


def test_where_no_kernel_is_for_the_device_the_model_keeps_its_function_and_the_record_says_so(tmp_path):
    registry = publish(tmp_path, [cpp_kernel(gpu="h200")])
    facts = GuestFacts.model_validate(measured(question(registry)).untrusted_facts)
    uses = _uses(facts, _evidence(facts, Registry.open(registry)))
    assert {(one.backend, one.reason) for one in uses} == {("fallback", "own_function")}
    assert facts.adopted_error == facts.own_error


FIRST_WAITS = b"""

import time
built, build_one = [], build


def build(config, seed, op):
    built.append(model := build_one(config, seed, op))
    if len(built) == 2:  # the first is built for the names of its functions, before any side
        model.register_forward_pre_hook(lambda *_: time.sleep(0.1))
    return model
"""


def test_each_side_is_built_first_in_turn(registry):
    plan = WindowPlan(process_pairs=3, rounds=3, window_s=0.002, threads=1)
    times = measured(question(registry, SOURCE + FIRST_WAITS), plan).times_ns
    waited = [{side for side in times if min(times[side][pair]) >= 0.1e9} for pair in range(3)]
    assert sorted(side for sides in waited for side in sides) == ["adopted", "control", "own"]
    assert [len(sides) for sides in waited] == [1, 1, 1]


def known(median_ns: float, baseline_median_ns: float) -> Evidence:
    times = {"median_ns": median_ns, "baseline_median_ns": baseline_median_ns}
    return Evidence({**times, "speedup": baseline_median_ns / median_ns}, 0.0)


def test_the_prediction_follows_from_the_kernels_own_evidence():
    kernel = FunctionShare(op="rmsnorm", kernel_id="k_v1", share=0.5, calls=2.0)
    other = FunctionShare(op="rmsnorm", kernel_id=None, share=0.25, calls=1.0)
    evidence = {"k_v1": known(100.0, 150.0)}
    assert predicted_speedup("eager", 1000.0, [kernel, other], evidence) == pytest.approx(1 / 0.7)
    assert predicted_speedup("graphs", 1000.0, [kernel, other], evidence) == pytest.approx(1 / 0.9)
    assert predicted_speedup("compile", 1000.0, [other], evidence) == 1.0
    huge = FunctionShare(op="rmsnorm", kernel_id="k_v1", share=1.0, calls=0.0)
    assert predicted_speedup("eager", 1000.0, [huge], evidence) == pytest.approx(100)


def test_a_kernel_counts_where_it_runs_and_no_further():
    times = {side: [[2.0, 2.0], [2.0, 2.1]] for side in ("own", "adopted", "control")}
    fields = {"op": "rmsnorm", "hits": 1, "sha256": "0" * 64, "reason": None}
    taken = {**fields, "backend": "source", "kernel_id": "k_v1"}
    passed = {**fields, "backend": "fallback", "kernel_id": None, "sha256": None, "reason": "dtype"}
    shares = [
        {"op": "rmsnorm", "kernel_id": "k_v1", "share": 0.5, "calls": 1.0},
        {"op": "rmsnorm", "kernel_id": None, "share": 0.25, "calls": 1.0},
    ]
    facts = GuestFacts(
        config={}, own_error=0.0, adopted_error=0.0, equal_tokens=64, generation="", lines=[taken, passed],
        shares=shares,
    )  # fmt: skip
    evidence = {"k_v1": known(0.1, 0.2)}
    uses = _uses(facts, evidence)
    assert [(one.kernel_id, one.share, one.speedup) for one in uses] == [("k_v1", 0.5, 2.0), (None, 0.25, None)]
    found = compare(ModelSamples(times, {}), facts, uses, mode="eager", evidence=evidence)
    assert found.replaced_share == 0.5
    assert found.predicted == pytest.approx(1 / 0.55)
    assert found.speedup.ratio == 1.0


@pytest.mark.parametrize("name", ["llama_8b", "moe_block"])
def test_the_models_that_are_measured_on_a_gpu_make_steps_on_a_processor(name):
    """In this process: the tiny form, decode and prefill, own functions replaced one by one and as they are."""
    file = load_module(str(MODELS / f"{name}.py"), name)
    counted: dict[str, int] = {}

    def counting(op, own):
        def call(*arguments):
            counted[op] = counted.get(op, 0) + 1
            expected = find_operation(op).reference(*arguments)
            found = own(*arguments)
            torch.testing.assert_close(found, expected)
            return expected

        return call

    steps = [DECODE.model_dump(), parse_workload("prefill:b=2,tokens=5").model_dump()]
    with torch.no_grad():
        for workload in steps:
            own, other = (file.build(file.TINY, 3, op) for op in (lambda _, function: function, counting))
            answers = []
            for model in (own, own, other):
                tokens, state = file.start(model, file.TINY, workload, 3)
                answers.append(model(tokens, state, workload["context"]))
            assert answers[0].shape == (workload["batch"], 1, file.TINY["vocab"])
            assert torch.equal(answers[0], answers[1])
            torch.testing.assert_close(answers[2], answers[0], rtol=1e-4, atol=1e-4)
    assert set(counted) == {"llama_8b": {"rmsnorm", "fused_add_rmsnorm", "rope"}}.get(
        name, {"rmsnorm", "topk_softmax"}
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            (b"def build(config, seed, op):", b"def build(config, seed, op):\n    raise ValueError('no')"),
            "ValueError at",
        ),
        ((b'op("fused_add_rmsnorm"', b'op("nothing"'), "expected one in common"),
        (
            (
                b"        x = self.embedding(tokens)",
                b"        x = self.embedding(tokens) + __import__('os').urandom(1)[0]",
            ),
            "which rounding in another order explains",
        ),
        ((b"CONFIG = {", b"CONFIG = 3\nOTHER = {"), "CONFIG is 3"),
        (
            (b"    torch.manual_seed(seed)\n", b"    torch.manual_seed(seed)\n    bytearray(1 << 45)\n"),
            "ran out of memory",
        ),
    ],
    ids=["does not build", "no operation in common", "not deterministic", "no config", "out of memory"],
)
def test_a_model_that_cannot_be_measured_is_refused_with_the_reason(registry, change, said):
    assert change[0] in SOURCE
    plan = WindowPlan(process_pairs=2, rounds=2, window_s=0.0, threads=1)
    with pytest.raises(UsageError, match=said):
        measured(question(registry, SOURCE.replace(*change)), plan)


def of_steps_that_differ(by: bytes) -> bytes:
    """A model in bf16 of which every second step is another one; in fp32 all steps are equal."""
    odd = b"(next(STEPS) % 2 if self.embedding.weight.dtype == torch.bfloat16 else 0)"
    changed = b"        x = self.embedding(tokens) * (1 + " + by + b" * " + odd + b")"
    source = SOURCE.replace(b'"dtype": "fp32"', b'"dtype": "bf16"')
    return (
        source.replace(b"        x = self.embedding(tokens)", changed) + b"STEPS = __import__('itertools').count()\n"
    )


def test_a_model_whose_steps_differ_by_rounding_is_measured(registry):
    facts = GuestFacts.model_validate(measured(question(registry, of_steps_that_differ(b"2**-8"))).untrusted_facts)
    assert 0 < facts.own_error < 0.1


def test_a_model_whose_steps_differ_by_more_is_refused(registry):
    with pytest.raises(UsageError, match="two steps of the model differ by"):
        measured(question(registry, of_steps_that_differ(b"8")))


def test_graphs_ask_for_a_gpu(registry):
    with pytest.raises(EnvironmentUnfit, match="expected a GPU"):
        measured(question(registry, modes=("eager", "graphs")))


@pytest.mark.parametrize(
    "text",
    ["", "decode", "decode:b=0,context=8", "decode:b=4", "decode:context=8,b=4", "decode:b=4,context=8,x=1",
     "prefill:b=1",
     "prefill:b=1,tokens=0", "decode:b=-1,context=8", "decode:b=99999999999,context=1", "training:b=1"],
)  # fmt: skip
def test_a_workload_that_is_none_is_refused(text):
    with pytest.raises((UsageError, UnknownName), match="workload"):
        parse_workload(text)


def test_a_workload_is_read_as_it_is_written():
    for text in ("decode:b=16,context=1024", "prefill:b=1,tokens=4096"):
        assert parse_workload(text).text == text
    with pytest.raises(UnknownName, match="mode"):
        parse_mode("fast")
