"""Judges outputs against the oracle by the rule that the operation declares; docs/numerics.md derives each rule.

- `elementwise`: floats, each within its bound; on small integers, what is exact to the last bit
- `whole`: numbers and truth values that are right or wrong, and quantised ones
- `ranked`: positions of the largest values, by the values that stand there
- `drawn`: positions drawn by given numbers, by the weights; and many of them by how often each came
- `specials`: NaN and infinities where the reference has them
- `together`: whether all elements of a small type are too large, or too small
- `aggregate`: root mean square and mean of many errors
"""

from forge.lab.judge.aggregate import Aggregate, Sample, aggregate
from forge.lab.judge.drawn import chance_of
from forge.lab.judge.elementwise import SMALLEST_SIZE, JudgedOutput, plainly_within, spread, within_in_some
from forge.lab.judge.rules import PATTERNED_KINDS, SPECIAL_KINDS, judge, judge_kind
from forge.lab.judge.specials import judge_specials
from forge.lab.judge.together import plainly_together

__all__ = [
    "PATTERNED_KINDS",
    "SMALLEST_SIZE",
    "SPECIAL_KINDS",
    "Aggregate",
    "JudgedOutput",
    "Sample",
    "aggregate",
    "chance_of",
    "judge",
    "judge_kind",
    "judge_specials",
    "plainly_together",
    "plainly_within",
    "spread",
    "within_in_some",
]
