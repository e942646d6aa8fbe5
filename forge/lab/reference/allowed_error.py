"""The error that the bound of an own operation allows: the reference's own, measured at admission, times a factor."""

from collections.abc import Mapping

from forge.domain.own_operation import Contract
from forge.domain.tensors import DType

ERROR_FACTOR = 8.0
"""Factor on the reference's own error: another order of summation errs as much, and fused kernels a little more."""
LEAST_ERROR: Mapping[DType, float] = {"fp32": 2.0**-21, "fp16": 2.0**-13, "bf16": 2.0**-10}
"""Error relative to the root mean square that counts at least, by dtype: eight roundings in fp32, a quarter of one
elsewhere. Without it, a reference that only copies would have error 0."""
LEAST_WITHOUT_FP64: Mapping[DType, float] = {"fp32": 2.0**-13, "fp16": 2.0**-10, "bf16": 2.0**-7}
"""Least error by dtype, relative to the root mean square, if the reference's error can't be measured in fp64. After
ERROR_FACTOR it is a thousandth in fp32."""
ROUNDINGS = 2
"""Number of roundings to the output's type that a kernel may make on the way. Chosen; each more widens the bound by
u_out |y|."""


def least_error(contract: Contract) -> float:
    """Return the smallest error that counts for a result."""
    return (LEAST_ERROR if contract.wide else LEAST_WITHOUT_FP64)[contract.dtype]
