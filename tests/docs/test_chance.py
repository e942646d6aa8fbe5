"""Luck alone promotes nothing: a thousand simulated sessions over recorded measurements of a baseline by itself."""

import random
import runpy

from forge.domain.policy import Policy
from tests.docs.markdown import ROOT


def test_a_thousand_sessions_of_equal_kernels_promote_none_at_the_policys_minimum() -> None:
    chance = runpy.run_path(str(ROOT / "benchmarks" / "chance.py"))
    controls = chance["recorded"](ROOT)
    assert len(controls) >= 100
    found = chance["promoted"](controls, 1000, random.Random(chance["SEED"]))
    assert found[Policy().minimum_speedup] == 0
    assert found[1.0] > 0, "the simulation can tell luck"
