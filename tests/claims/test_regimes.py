"""A sentence about one regime is held against that regime's numbers, and names it."""

from dataclasses import replace

import pytest

from forge.claims.evidence import Measurement
from forge.claims.sentence import kernel_sentences
from forge.domain.evidence import Residency, ResidentTiming
from tests.claims.evidences import checked, evidence, measurement, problems, timing


def both() -> tuple[Measurement, Measurement]:
    """A kernel at 1.291x over compile with cold operands, and at 1.052x over the vendor with resident ones."""
    inside = timing({"eager": (9.1, 9.0, 9.2), "compile": (1.12, 1.11, 1.13), "vendor": (1.052, 1.05, 1.054)})
    resident = ResidentTiming(
        **{name: getattr(inside, name) for name in ("candidate", "speedups", "control", "process_pairs", "rounds")},
        floor_ns=300.0,
    )
    residency = Residency(cache_bytes=2**25, operand_bytes=2**18, timing=resident, why_not=None)
    cold = measurement()
    cold = replace(cold, timing=cold.timing.model_copy(update={"residency": residency}))
    return cold, replace(cold, regime="resident")


def test_each_regime_has_its_own_sentences_and_each_is_supported():
    cold, resident = both()
    said = {one.about: one.text for one in kernel_sentences(resident)}
    assert set(said) == {"speed", "floor", "time"}
    assert "1.052x as fast as the vendor's" in next(one.text for one in kernel_sentences(resident))
    for measured, words in ((cold, "with cold operands"), (resident, "with resident operands")):
        for one in kernel_sentences(measured):
            if one.about in ("speed", "floor", "time"):
                assert words in one.text
                assert not checked(one.text, evidence(cold, resident)).flagged, one.text


@pytest.mark.parametrize(("own", "other"), [("cold", "resident"), ("resident", "cold")])
def test_one_regime_s_number_isnt_said_of_the_other(own: str, other: str):
    cold, resident = both()
    speed = next(one.text for one in kernel_sentences(cold if own == "cold" else resident) if one.about == "speed")
    claimed = speed.replace(f"with {own} operands", f"with {other} operands")
    assert problems(claimed, evidence(cold, resident)) & {"overstated", "not_measured"}


def test_a_sentence_about_a_regime_that_wasnt_measured_has_no_evidence():
    only = measurement()
    speed = next(one.text for one in kernel_sentences(only) if one.about == "speed")
    assert "operands" not in speed
    assert problems(speed.replace(" for one call", " with resident operands for one call"), evidence(only)) == {
        "no_evidence"
    }
