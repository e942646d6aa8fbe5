"""The kinds of values that operands are drawn with."""

from typing import Literal

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
    "masked",
    "integers",
    "subnormal",
    "special_rows",
    "special_weights",
]
"""Kind of values that a workload's inputs are drawn with; `forge.lab.inputs.distributions` draws them."""
