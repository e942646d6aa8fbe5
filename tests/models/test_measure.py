"""A whole model is measured with and without adopted kernels, and the result is recorded whatever it says."""

import random
from pathlib import Path

import pytest

from forge.app.models import GuestFacts, _uses, compare
from forge.domain.model_measurement import AdoptedUse, ModelWorkload, parse_mode, parse_workload
from forge.domain.policy import Policy
from forge.errors import EnvironmentUnfit, UnknownName, UsageError
from forge.executor.local import isolation
from forge.lab.model_windows import ModelQuestion, ModelSamples, WindowPlan, measure_model
from forge.lookup import Registry
from tests.adopt.making import cpp_kernel, publish

SOURCE = Path(__file__).with_name("small_transformer.py").read_bytes()
DECODE = ModelWorkload(kind="decode", batch=4, context=8, tokens=1)
PLAN = WindowPlan(process_pairs=2, rounds=2, window_s=0.002, threads=1)


def question(registry: Path, source: bytes = SOURCE, **changes: object) -> ModelQuestion:
    fields = {"name": "small", "workload": DECODE, "mode": "eager", "seed": 1, "gpu": None}
    return ModelQuestion(source=source, registry=registry, **{**fields, **changes})


def measured(asked: ModelQuestion, plan: WindowPlan = PLAN) -> ModelSamples:
    return measure_model(asked, plan, policy=Policy(), isolation=isolation(), rng=random.Random(1))


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish(tmp_path_factory.mktemp("registry"), [cpp_kernel()])


def test_the_promoted_kernel_runs_in_the_model_and_gives_its_answers(registry):
    samples = measured(question(registry))
    facts = GuestFacts.model_validate(samples.untrusted_facts)
    uses = _uses(facts, Registry.open(registry))
    assert {(one.backend, one.kernel_id) for one in uses} == {("source", "cpp_fused_add_rmsnorm_cpu_fp32_v1")}
    assert facts.equal_tokens == 64
    assert facts.own_error == 0
    assert 0 < facts.adopted_error < 1e-4
    assert {side: [len(one) for one in times] for side, times in samples.times_ns.items()} == {
        side: [2, 2] for side in ("own", "adopted", "control")
    }
    found = compare(samples, facts, uses)
    assert 0 < found.replaced_share < 1
    assert found.predicted > 1
    assert found.own_median_ns > 0


def test_the_prediction_follows_from_the_share_and_the_kernels_own_evidence():
    times = {side: [[2.0, 2.0], [2.0, 2.1]] for side in ("own", "adopted", "control")}
    facts = GuestFacts(
        config={}, own_error=0.0, adopted_error=0.0, equal_tokens=64, generation="", lines=[], shares={}
    )
    use = {"op": "rmsnorm", "hits": 1, "share": 0.5}
    kernel = AdoptedUse(**use, backend="source", kernel_id="k_v1", sha256="0" * 64, reason=None, speedup=2.0)
    other = AdoptedUse(
        **{**use, "op": "softmax"}, backend="fallback", kernel_id=None, sha256=None, reason="dtype", speedup=None
    )
    found = compare(ModelSamples(times, {}), facts, (kernel, other))
    assert found.predicted == pytest.approx(1 / 0.75)
    assert found.replaced_share == 0.5
    assert found.speedup.ratio == 1.0


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
            "deterministic",
        ),
        ((b"CONFIG = {", b"CONFIG = 3\nOTHER = {"), "CONFIG is 3"),
    ],
    ids=["does not build", "no operation in common", "not deterministic", "no config"],
)
def test_a_model_that_cannot_be_measured_is_refused_with_the_reason(registry, change, said):
    assert change[0] in SOURCE
    plan = WindowPlan(process_pairs=2, rounds=2, window_s=0.0, threads=1)
    with pytest.raises(UsageError, match=said):
        measured(question(registry, SOURCE.replace(*change)), plan)


def test_graphs_ask_for_a_gpu(registry):
    with pytest.raises(EnvironmentUnfit, match="expected a GPU"):
        measured(question(registry, mode="graphs"))


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
