"""The kinds of values that operands are drawn with."""

from typing import Literal, get_args

InputKind = Literal[
    "normal",
    "uniform",
    "large",
    "small",
    "tiny",
    "offset_mean",
    "offset_operands",
    "outlier_channel",
    "rows_apart",
    "sparse",
    "single",
    "padded",
    "ordered",
    "heavy_tails",
    "ties",
    "constant",
    "zeros",
    "zero_rows",
    "weights_near_one",
    "zero_weights",
    "equal_weights",
    "large_columns",
    "masked",
    "integers",
    "subnormal",
    "special_rows",
    "special_weights",
    "mixed",
    "equal_operands",
    "falling",
    "alternating",
    "one_sided",
    "far",
    "equal_rows",
    "far_rows",
    "outliers",
    "signed_weights",
    "large_weights",
    "far_weights",
    "ends",
    "end_rows",
    "lowest",
    "highest",
    "outside_range",
    "far_outside_range",
    "very_far",
    "beside_zero",
    "overflowing",
    "shifted_range",
    "near_highest",
    "zero_diagonal",
]
"""Kind of values that a workload's inputs are drawn with; `forge.lab.inputs.distributions` draws them."""
EndKind = Literal["ends", "end_rows", "lowest", "highest"]
END_KINDS: tuple[EndKind, ...] = get_args(EndKind)
"""Kinds for reference files alone: numbers that aren't continuous reach the ends of their ranges.

In order: a few among others, whole rows, all at the lower end, all at the upper end."""
REFERENCE_KINDS: tuple[InputKind, ...] = (
    *END_KINDS,
    *("falling", "alternating", "one_sided", "far", "equal_rows", "far_rows", "outliers"),
    *("signed_weights", "large_weights", "far_weights", "outside_range", "far_outside_range"),
    *("very_far", "beside_zero", "overflowing", "shifted_range", "near_highest", "zero_diagonal"),
)
"""Kinds for reference files alone: besides the ends, rows that fall, and values above and below their middle in turn.
Rows that lie wholly above or wholly below it as well, and whole samples that lie thousands above or below it. Then
powers of two in rows of which some are equal. Then rows of one value each, whose products are thousands apart. Then
a few numbers of each row that are far larger than the others, at other places in each row. Then weights of either
sign, which a norm that is new hasn't. Others are sixteen or hundreds of times as large as new ones. Then numbers near
the range of a uniform operand and far outside of it. Then normal ones 2^17 deviations away, and all on one side.
Then uniform operands so large that powers of e overflow, and on one side of zero. Then whole numbers near the upper
end of their range. Last, square matrices with zeros on their diagonal.

For an operation of the catalogue, the kind `mixed` has such rows; `large` and `offset_mean` have such values, and
`large_columns` has such outliers."""
