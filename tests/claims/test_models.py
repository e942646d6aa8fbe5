"""A sentence about a model rests on an end-to-end measurement of that model, processor, workload and mode."""

from pathlib import Path

import pytest

from forge.claims import ClaimEvidence
from forge.claims.evidence import gather
from forge.domain.evidence import Interval
from forge.events import parse_event
from forge.events.model import ModelMeasured
from tests.claims.evidences import checked, evidence, problems
from tests.projections.histories import opened

GOLDEN = Path(__file__).parents[1] / "events" / "golden" / "ModelMeasured.v1.json"
SEQ = 77
TRUE = (
    "On the H200, adopted kernels make llama at decode:b=16,context=1024 in eager mode 1.020x "
    "(1.010 to 1.030x) as fast as its own functions (event 77)."
)


def event(**changes: object) -> ModelMeasured:
    found = parse_event("ModelMeasured", 1, GOLDEN.read_bytes())
    assert isinstance(found, ModelMeasured)
    return found.model_copy(update=changes)


def with_model(**changes: object) -> ClaimEvidence:
    own = evidence()
    known = own.known | {SEQ}
    return ClaimEvidence(own.measurements, {}, known, {SEQ: event(**changes)})


def test_a_sentence_with_everything_that_the_event_holds_may_be_said():
    (supported,) = checked(TRUE, with_model()).supported
    assert supported.rests_on == ("event 77, ModelMeasured",)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("llama", "mistral", "other_model"),
        ("b=16", "b=32", "other_model"),
        ("eager mode", "a captured graph", "other_model"),
        ("H200", "H100", "wrong_processor"),
        ("On the H200, adopted", "Adopted", "no_processor"),
        ("1.020x", "1.200x", "overstated"),
        ("1.020x", "1.029x", "overstated"),
        ("1.020x", "1.001x", "not_measured"),
        ("(1.010 to 1.030x) ", "", "no_interval"),
        ("1.030x)", "1.020x)", "wrong_interval"),
        ("its own functions", "eager", "no_baseline"),
        ("adopted kernels", "triton_rmsnorm_h200_bf16_b16_h4096_v1", "beyond_operation"),
    ],
)
def test_what_the_event_does_not_bear_out_is_flagged(old, new, problem):
    assert old in TRUE
    assert problem in problems(TRUE.replace(old, new), with_model())


def test_a_noisy_machine_allows_no_sentence():
    assert "no_verdict" in problems(TRUE, with_model(conclusive=False))


def test_without_such_an_event_nothing_may_be_said_of_a_model():
    assert problems(TRUE)


def test_no_gain_is_said_as_it_is():
    found = event().comparison.model_copy(update={"speedup": Interval(ratio=0.999, low=0.998, high=1.0)})
    said = TRUE.replace("1.020x (1.010 to 1.030x)", "0.999x (0.998 to 1.000x)")
    assert not problems(said, with_model(comparison=found))


def test_a_ledgers_measurements_of_models_are_evidence():
    history = opened()
    seq = history.add(event())
    assert set(gather(history.events).models) == {seq}
