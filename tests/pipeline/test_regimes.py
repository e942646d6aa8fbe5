"""The resident regime in the rule: won like the cold one, skipped only where it does not apply, read back."""

import pytest

from forge.app.stored.policy_file import load_policy, recorded_policy
from forge.domain.digest import canonical
from forge.domain.evidence import Residency
from forge.domain.policy import Policy
from forge.events import KernelPromoted, PromotionDenied
from forge.lab.timing.residency import Residence
from forge.lab.timing.slope import SlopeSamples
from forge.ledger.audit.differences import differences
from forge.ledger.audit.rule import first_unmet, reason_differences
from forge.ledger.audit.samples import workload
from forge.pipeline.promote import promote
from forge.pipeline.promotion_rule import decide
from forge.pipeline.samples import Samples, parse_samples, render_samples
from forge.pipeline.timings import Measured, workload_timing
from tests.app.prepared import samples
from tests.pipeline.making import DIGEST, POLICY, case, confirmed, in_cache, made, timing

NOT_CONFIRMED = in_cache().model_copy(update={"timing": in_cache().timing.model_copy(update={"confirmation": None})})


@pytest.mark.parametrize(
    ("residency", "code"),
    [
        (in_cache(), None),
        (in_cache(low=0.9), "TOO_SLOW"),
        (in_cache(low=1.05), "NOISE_TOO_HIGH"),
        (in_cache(lost=1), "TOO_SLOW"),
        (in_cache(control=(0.9, 1.2)), "NOISE_TOO_HIGH"),
        (in_cache(again=confirmed(low=0.9)), "TOO_SLOW"),
        (in_cache(again=confirmed(low=1.0)), "NOISE_TOO_HIGH"),
        (NOT_CONFIRMED, "INFRASTRUCTURE"),
        (None, "INFRASTRUCTURE"),
        (Residency(cache_bytes=1, operand_bytes=1, timing=None, why_not=None), "INFRASTRUCTURE"),
    ],
)
def test_a_policy_with_both_regimes_asks_for_both(residency, code):
    measured, task = timing(residency=residency), made()
    against = decide(task, POLICY, measured, "eager")
    assert (against and against.code) == code
    assert against is None or against.message.startswith("with resident operands: ")
    documents = [one.model_dump(mode="json") for one in (task, POLICY, measured)]
    assert list(reason_differences(*documents, "eager", code)) == [], "the audit derives the same"
    decided = promote(case(benchmark={"workloads": (measured,)}), earlier_versions=0)
    assert isinstance(decided, KernelPromoted if code is None else PromotionDenied)
    assert decided.gates[-1].name == "resident"


def test_a_policy_for_the_cold_regime_doesnt_look_at_the_other():
    cold = POLICY.model_copy(update={"regimes": ("cold",)})
    assert decide(made(cold), cold, timing(residency=in_cache(low=0.5)), "eager") is None
    document = {name: value for name, value in POLICY.model_dump(mode="json").items() if name != "regimes"}
    slow = timing(residency=in_cache(low=0.5)).model_dump(mode="json")
    assert first_unmet(made().model_dump(mode="json"), document, slow, "eager") is None, "older than the field"


def test_a_recorded_policy_that_names_no_regime_keeps_its_meaning_and_its_bytes():
    assert Policy().regimes == ("cold",)
    assert "regimes" not in Policy().model_dump(mode="json")
    assert recorded_policy(canonical(Policy())) == Policy()
    assert POLICY.model_dump(mode="json")["regimes"] == ["cold", "resident"]


@pytest.mark.parametrize(
    ("text", "regimes"),
    [
        (None, ("cold", "resident")),
        ("", ("cold", "resident")),
        ("rounds = 4\n", ("cold", "resident")),
        ('regimes = ["cold"]\n', ("cold",)),
    ],
)
def test_a_workspace_asks_for_both_regimes_unless_its_policy_says_otherwise(tmp_path, text, regimes):
    if text is not None:
        (tmp_path / "policy.toml").write_text(text)
    policy = load_policy(tmp_path)
    assert policy.regimes == regimes
    assert recorded_policy(canonical(policy)) == policy
    assert policy.rounds == (4 if text and "rounds" in text else Policy().rounds)


def both(*, cold_ns: float = 50_000, resident_ns: float = 20_000) -> Samples:
    """Samples of both regimes: eager takes 100 us cold, and 30 us from the cache."""
    (cold,) = samples(candidate_ns=cold_ns).attempts
    (resident,) = samples(candidate_ns=resident_ns, eager_ns=30_000).attempts
    assert isinstance(cold, SlopeSamples)
    assert isinstance(resident, SlopeSamples)
    inside = SlopeSamples(calls=resident.calls, pairs=resident.pairs)
    return Samples(
        (SlopeSamples(calls=cold.calls, pairs=cold.pairs, residence=Residence(2**25, 2048), resident=inside),)
    )


def test_samples_of_both_regimes_are_read_as_they_were_written_and_audited():
    found = both()
    stored = render_samples(found, found)
    assert parse_samples(stored).samples == found
    measured = Measured(samples=found, floor_ns=9000.0, claims={}, resident_floor_ns=900.0, confirmation=found)
    recorded = workload_timing({"batch": 4}, measured, samples_sha256=DIGEST)
    assert recorded.residency is not None
    assert recorded.residency.timing is not None
    assert recorded.residency.timing.speedups[0].interval.ratio == pytest.approx(1.5, rel=1e-3)
    assert recorded.speedups[0].interval.ratio == pytest.approx(2.0, rel=1e-3)
    assert recorded.residency.timing.confirmation is not None
    import json

    document = recorded.model_dump(mode="json")
    assert list(differences(workload(json.loads(stored), document), document, "")) == []
    document["residency"]["timing"]["control"]["low"] = 0.5
    assert [one[0] for one in differences(workload(json.loads(stored), document), document, "")] == [
        "residency.timing.control.low"
    ]


def test_old_samples_say_nothing_of_the_regime_and_render_as_before():
    (old,) = samples().attempts
    assert isinstance(old, SlopeSamples)
    plain = Samples((SlopeSamples(calls=old.calls, pairs=old.pairs),))
    assert b"resid" not in render_samples(plain)
    measured = Measured(samples=plain, floor_ns=9000.0, claims={})
    assert "residency" not in workload_timing({"batch": 4}, measured, samples_sha256=DIGEST).model_dump(mode="json")
