"""Advice is by whole models in pairs: what doesn't help isn't proposed."""

import math
import time

import pytest
import torch

from forge.adopt import adopt
from forge.adopt.advice import median_interval
from forge.errors import UsageError
from tests.adopt.making import RMSNORM, kernel, publish

SLOW = RMSNORM.replace("    wide = x.float()", "    time.sleep(0.1)\n    wide = x.float()").replace(
    "import torch", "import time\n\nimport torch", 1
)


def slow_own(x, weight, eps):
    time.sleep(0.1)
    return x


def quick_own(x, weight, eps):
    return x


def model_with(own):
    def build(op):
        norm = op("rmsnorm", own)
        return lambda x, weight: norm(x, weight, 1e-6)

    return build


INPUTS = (torch.randn(4, 64), torch.ones(64))


@pytest.mark.parametrize(("source", "own", "proposed"), [(RMSNORM, slow_own, ("rmsnorm",)), (SLOW, quick_own, ())])
def test_an_operation_is_proposed_if_the_model_is_faster_with_it(tmp_path, source, own, proposed):
    publish(tmp_path, [kernel("rmsnorm", source)])
    with adopt(tmp_path, trust="promoted", refresh_s=0) as ops:
        advice = ops.advise(model_with(own), INPUTS, pairs=11, window_s=0.004)
        assert advice.adopt == proposed
        assert f"adopt: {'rmsnorm' if proposed else 'none'}" in advice.table()


def test_what_the_model_does_not_name_and_numbers_that_make_no_sense_are_refused(tmp_path):
    publish(tmp_path, [kernel("rmsnorm", RMSNORM)])
    with adopt(tmp_path, trust="promoted", refresh_s=0) as ops:
        with pytest.raises(UsageError, match="expected one of rmsnorm"):
            ops.advise(lambda op: op("softmax", quick_own), INPUTS)
        for changes in ({"pairs": 5}, {"window_s": 0.0}, {"window_s": math.inf}):
            with pytest.raises(UsageError, match="expected at least 6"):
                ops.advise(model_with(quick_own), INPUTS, **changes)


def test_the_median_lies_between_the_ordered_values_with_95_percent():
    assert median_interval([3, 1, 2, 5, 4, 6]) == (1, 6)
    assert median_interval(list(range(11))) == (1, 9)
    assert median_interval([1, 2, 3, 4, 5]) == (-math.inf, math.inf)
