"""What the demonstration's exit status says: went as it should, or didn't."""

import pytest

from forge.app.demo.demo import DemoResult
from forge.cli.demo import tell, went_well

PROMOTED: dict[str, object] = {"kernel_id": "cpp_rmsnorm_cpu_fp32_b16_h4096_v1"}
DENIED: dict[str, object] = {"kernel_id": None}
TIMED: dict[str, object] = {"verdict": "accepted", "reason": None}


def told(benchmark: dict[str, object], promoted: dict[str, object] | None, cheat: str) -> DemoResult:
    return DemoResult(
        home="demo",
        title="a story",
        slot="rmsnorm, cpu",
        honest_run="honest",
        cheat_run="cheat",
        benchmark=benchmark,
        promoted=promoted,
        refused={"verdict": cheat, "gates": []},
        claims=[],
        lookup={"match": "exact", **promoted} if promoted == PROMOTED else {"match": "none", "kernel_id": None},
    )


def ended(code: str) -> dict[str, object]:
    return {"verdict": "inconclusive", "reason": {"code": code}}


@pytest.mark.parametrize(
    ("benchmark", "promoted", "cheat", "well"),
    [
        (TIMED, PROMOTED, "rejected", True),
        (TIMED, PROMOTED, "accepted", False),
        (TIMED, DENIED, "rejected", False),
        (ended("NOISE_TOO_HIGH"), None, "rejected", True),
        (ended("NOISE_TOO_HIGH"), None, "accepted", False),
        (ended("INFRASTRUCTURE"), None, "rejected", False),
        (ended("TOO_SLOW"), None, "rejected", False),
    ],
)
def test_noise_alone_is_no_failure(
    benchmark: dict[str, object], promoted: dict[str, object] | None, cheat: str, well: bool
) -> None:
    assert went_well(told(benchmark, promoted, cheat)) is well


def test_without_a_promotion_the_lookup_says_why_it_has_none_and_what_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tell(told(ended("NOISE_TOO_HIGH"), None, "rejected"))
    noisy = capsys.readouterr().out
    assert "rmsnorm, cpu: none, since nothing was promoted" in noisy
    assert "forge bench honest --home demo" in noisy
    tell(told(TIMED, PROMOTED, "rejected"))
    promoted = capsys.readouterr().out
    assert "rmsnorm, cpu: exact, cpp_rmsnorm_cpu_fp32_b16_h4096_v1" in promoted
    assert "forge bench" not in promoted
