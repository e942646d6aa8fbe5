"""Holds a candidate's domain, or a task's, against the operation and the task."""

from forge.domain.covering import uncovered
from forge.domain.domain_shapes import holds_at_least
from forge.domain.domain_text import parse_domain
from forge.domain.kernel_domain import KernelDomain
from forge.domain.task import Task
from forge.errors import UsageError
from forge.operations import find_operation
from forge.operations.operation import Operation

FEWEST_SHAPES = 5
"""Number of shapes that a domain must hold unless the task asks for less. In a few shapes a kernel may hide a table
of answers, and verification would ask hardly more than the public shape."""


def domain_fault(domain: KernelDomain, task: Task) -> str | None:
    """Return why a candidate's domain doesn't fit its task, or None."""
    operation = find_operation(task.op)
    faults = (shape_fault(domain, operation, shape) for shape in task.shapes)
    fault = next((one for one in faults if one is not None), None)
    if fault is not None:
        return fault
    try:
        resolved = resolved_for(operation, domain)
    except ValueError as error:
        return str(error)
    if task.domain is not None:
        missing = uncovered(resolved, task.domain, operation.layouts)
        if missing is not None:
            return f"it demands {missing}: expected a domain that holds all of the task's, {task.domain.text}"
    elif not holds_at_least(resolved, task.shape, FEWEST_SHAPES):
        return (
            f"fewer than {FEWEST_SHAPES} shapes lie in it ({domain.text}), and the task doesn't ask for so few: "
            "expected a wider domain, or a task with `--domain`"
        )
    return None


def stated_domain(untrusted_text: str, operation: Operation, shape: dict[str, int]) -> KernelDomain:
    """Return the domain that a kernel's author states; raise UsageError unless it holds the shape and some others."""
    domain = parse_domain(untrusted_text, operation.axes)
    fault = shape_fault(domain, operation, shape)
    if fault is None and not holds_at_least(resolved_for(operation, domain), shape, FEWEST_SHAPES):
        fault = f"fewer than {FEWEST_SHAPES} shapes lie in it: expected a wider domain"
    if fault is not None:
        raise UsageError(f"bad domain {untrusted_text!r}: {fault}")
    return domain


def shape_fault(domain: KernelDomain, operation: Operation, shape: dict[str, int]) -> str | None:
    """Return why a shape can't be in a domain of this operation, or None if it lies inside."""
    unknown = next((axis for axis in domain.named_axes if axis not in operation.axes), None)
    if unknown is not None:
        return f"unknown axis {unknown!r}: expected one of {', '.join(operation.axes)}"
    try:
        broken = resolved_for(operation, domain).broken(shape)
    except ValueError as error:
        return str(error)
    if broken is None:
        return None
    said = ", ".join(f"{axis} = {size}" for axis, size in sorted(shape.items()))
    return f"it excludes the task's shape ({said}), since it demands {broken}: expected a domain that holds it"


def resolved_for(operation: Operation, domain: KernelDomain) -> KernelDomain:
    """Return the domain with its limit on elements resolved; raise ValueError if an operand always exceeds it."""
    return domain.resolved((*operation.inputs, *operation.outputs))
