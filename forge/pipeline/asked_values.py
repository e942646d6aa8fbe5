"""Says in words which values the operands of a brief have, which sizes vary, and what the bound is as numbers."""

from typing import assert_never

from forge.domain.own_operation import (
    BATCH,
    Among,
    Constant,
    Contract,
    Family,
    Generated,
    Integers,
    Normal,
    Operand,
    Uniform,
)
from forge.domain.policy import Policy
from forge.domain.task import Task
from forge.domain.tensors import (
    UNIT_ROUNDOFF,
    AnyByte,
    AsKind,
    Between,
    Chance,
    Counts,
    Indices,
    LogSums,
    Parts,
    Rotations,
    Slots,
    TensorSpec,
    Whole,
)
from forge.lab.reference.allowed_error import ERROR_FACTOR, ROUNDINGS, least_error
from forge.operations.operation import Operation


def values_of(operation: Operation, spec: TensorSpec) -> str:
    """Return in words which values an input has."""
    own = operation.own
    if own is None:
        return _of_rule(spec)
    operand = next((one for one in own.contract.tensors if one.name == spec.name), None)
    return _of_operand(operand) if operand is not None else "near the module's initial values, drawn anew"


def _of_rule(spec: TensorSpec) -> str:
    values = spec.values
    match values:
        case AsKind(exponent=exponent):
            return "floats of every kind that is asked" + (f", times 2^{exponent}" if exponent else _besides(values))
        case Indices(axis=axis):
            return f"whole numbers from 0 to {axis} - 1"
        case Whole(below=below):
            return f"whole numbers from 0 to {below - 1}"
        case AnyByte():
            return "every value of its type"
        case Between(low=low, high=high, by=by):
            return f"from {low:g} to {high:g}, {'evenly' if by == 'difference' else 'evenly by ratio'}"
        case Counts(axis=axis):
            return f"whole numbers from -2 to {axis} + 19, and some up to 2^31 - 1; half are small"
        case Chance():
            return "from 0 up to 1"
        case Parts(axis=axis):
            return f"whole numbers that add up to {axis}, in some calls to less; some are 0"
        case Slots(axis=axis):
            return f"distinct whole numbers below {axis}, or -1 for none"
        case _:
            assert_never(values)


def _besides(values: AsKind) -> str:
    """Return in words which values there are besides those of every kind."""
    match values:
        case LogSums():
            return ", and minus infinity for an empty sum"
        case Rotations():
            return ", and a model's table for positions in turn"
        case _:
            return ""


def _of_operand(operand: Operand) -> str:
    by = {"file": "; drawn by the file's get_inputs()", "planted": "; drawn by the file's get_inputs(), and its ends"}
    return _of_family(operand.drawn) + by.get(operand.source, "") + _ties(operand)


def _of_family(drawn: Family) -> str:
    match drawn:
        case Uniform(low=low, high=high):
            return f"evenly from {low:g} to {high:g}"
        case Normal(mean=mean, deviation=deviation):
            return f"normal, mean {mean:g}, deviation {deviation:g}"
        case Among(values=values):
            return f"one of {', '.join(f'{value:g}' for value in values)}"
        case Integers(low=low, high=high):
            return f"whole numbers from {low} to {high}, both asked"
        case Generated(structure=structure):
            return structure
        case _:
            assert_never(drawn)


def _ties(operand: Operand) -> str:
    return "; it fits only to the other operands that say so" if operand.coupled else ""


def own_terms(task: Task, operation: Operation) -> dict[str, object]:
    """Return which sizes of an own operation vary, its constants, and what isn't asked; empty for the catalogue."""
    if operation.own is None:
        return {}
    contract = operation.own.contract
    kinds = ", ".join(contract.kinds) or "none"
    return {
        "entry": "ModelNew" if contract.form == "model" else contract.entry,
        "form": contract.form,
        "varies": list(_axes(task, contract)),
        "constants": [[one.name, one.literal] for one in contract.arguments if isinstance(one, Constant)],
        "kinds": kinds,
        "finite": ", ".join(contract.finite_kinds),
        "state": [one.names[0] for one in contract.weights],
    }


def _axes(task: Task, contract: Contract) -> list[str]:
    named = {one.name for one in contract.axes}
    if not contract.varies:
        said = [f"`{BATCH}` is {task.shape[BATCH]} in every call"] if BATCH not in named else []
    else:
        said = [f"`{BATCH}` takes other sizes too, down to 1"] if BATCH not in named else []
    said += [f"`{one.name}` takes every size from {one.low} to {one.high}" for one in contract.axes]
    return [*said, "every other size is the number in the table"]


def bounds_of(task: Task, operation: Operation, policy: Policy) -> list[str]:
    """Return the error bound in numbers, a line for each floating-point element type of the outputs."""
    if operation.own is not None:
        return _own_bounds(operation.own.contract, policy)
    u_acc = UNIT_ROUNDOFF["fp32"]
    types = dict.fromkeys(spec.rounded_to(task.dtype) for spec in operation.outputs)
    return [
        f"for results of type {dtype}: u_out = {UNIT_ROUNDOFF[dtype]:.3g}; u_acc = {u_acc:.3g}, so c u_acc = "
        f"{policy.tolerance_accumulate_multiple * u_acc:.3g}"
        for dtype in types
    ]


def _own_bounds(contract: Contract, policy: Policy) -> list[str]:
    """Return the bound of each float result; docs/numerics.md derives it."""
    u_out = UNIT_ROUNDOFF[contract.dtype]
    multiple = policy.tolerance_baseline_multiple
    said = []
    for place, one in enumerate(contract.results):
        name = "output" if len(contract.results) == 1 else f"output_{place}"
        if one.element is not None:
            said.append(f"`{name}` must be equal")
            continue
        share = ERROR_FACTOR * max(one.error, least_error(contract))
        bound = f"{ROUNDINGS * u_out:.3g} |y*| + {share:.3g} rms(y*)"
        if one.local is not None:
            local = ERROR_FACTOR * one.local.error
            near = {"all": "all values", "row": "its row"}.get(one.local.around, f"its {one.local.around}")
            bound = (
                f"{ROUNDINGS * u_out:.3g} |y*| + the smaller of {share:.3g} rms(y*) and {local:.3g} (|y*| + "
                f"{one.local.share:.3g} times the root mean square of {near})"
            )
        said.append(f"`{name}`: {bound}, or {multiple:g} times the reference's own error there, if that is larger")
    return said
