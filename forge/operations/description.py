"""Describes an operation for programs that call promoted kernels: a document of plain data, and the reference.

`forge.adopt` reads it. It says how many operands there are and how their sizes follow from the axes. It also says
which scalars follow them, and what a call returns or writes in place. So an own operation is adopted like one of the
catalogue.
"""

from forge.domain.own_operation import Contract
from forge.domain.tensors import INTEGERS, TensorSpec
from forge.operations import reference_source
from forge.operations.operation import Operation

SCHEMA_VERSION = 1
"""Version of the description; `forge.adopt` reads only this one."""
ROUNDINGS = 16
"""Largest difference between a kernel and the reference, in unit roundoffs of the value and its row.

Both may err by the task's bound, which allows up to eight roundings of a value (docs/numerics.md).
"""


def description(operation: Operation) -> dict[str, object]:
    """Return the operation as plain data: operands, scalars, outputs and the bound that shadow calls compare by."""
    contract = operation.own.contract if operation.own else None
    return {
        "schema_version": SCHEMA_VERSION,
        "op": operation.name,
        "summary": operation.summary,
        "axes": list(operation.axes),
        "dtypes": list(operation.dtypes),
        "inputs": [_operand(spec) for spec in operation.inputs],
        "scalars": dict(operation.scalars),
        "outputs": [_operand(spec) | _bound(spec, place, contract) for place, spec in enumerate(operation.outputs)],
        "updates": list(operation.updates),
        "fixed": _fixed(operation),
        "layouts": list(operation.layouts),
        "reduced_axis": operation.reduced_axis if contract is None else None,
        "entry": contract.entry if contract else operation.reference.__name__,
        "numerics": operation.numerics,
        "unfit": None if contract is None else _unfit(contract),
    }


def reference_bytes(operation: Operation) -> bytes:
    """Return the reference's source text as it is published: never a candidate's own `reference.py`."""
    return reference_source(operation).encode()


def _operand(spec: TensorSpec) -> dict[str, object]:
    """Return one operand: an axis that is a number is a fixed size."""
    return {
        "name": spec.name,
        "axes": list(spec.axes),
        "element": spec.element,
        "times": dict(spec.times),
        "per": dict(spec.per),
        "at_most": dict(spec.at_most),
    }


def _fixed(operation: Operation) -> dict[str, int]:
    """Return the size of each axis that no operand has: an own operation may have a batch that doesn't vary."""
    told = {axis for spec in operation.inputs for axis in spec.axes}
    sizes = operation.own.contract.shape if operation.own else {}
    return {axis: size for axis, size in sizes.items() if axis not in told}


def _bound(spec: TensorSpec, place: int, contract: Contract | None) -> dict[str, object]:
    """Return how far a kernel's output may lie from the reference's.

    - `close`: `roundings` unit roundoffs of the value and of its row's root mean square, plus `share` of the latter.
    - `step`: one step of the output's coarse grid.
    - `ranked`: whole numbers such as positions, where ties and near ties may change places. They aren't compared.
    """
    if spec.element in ("int8", "uint8", "fp8_e4m3"):
        return {"bound": {"kind": "step"}}
    if spec.element in INTEGERS:
        return {"bound": {"kind": "ranked"}}
    share = 4 * contract.results[place].error if contract else 0.0
    return {"bound": {"kind": "close", "roundings": ROUNDINGS, "share": share}}


def _unfit(contract: Contract) -> str | None:
    """Return why an own operation can't be called as a plain function of tensors; None if it can."""
    if contract.form != "function":
        return "its reference is a module, whose kernel may be a class"
    if contract.weights or len(contract.tensors) != len(contract.arguments):
        return "its reference takes arguments that aren't tensors"
    if any(one.keyword for one in contract.arguments) or any(one.key for one in contract.results):
        return "its reference takes keywords, or returns a dictionary"
    return None
