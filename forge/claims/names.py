"""Whether a sentence names what its number holds for: the right processor, shape, element type and operation."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from forge.claims import named
from forge.claims.evidence import Measurement
from forge.claims.figure import Figure
from forge.claims.sentence import shape_written
from forge.claims.verdict import Fault
from forge.platforms import PROCESSORS, evidence_reach


@dataclass(frozen=True)
class Scope:
    """Where a sentence may name things: in itself, else in its passage."""

    text: str
    block: str
    cites: named.Cited

    def baseline_of(self, figure: Figure) -> named.BaselineNamed | None:
        """What a ratio is over: the first baseline after it, else the last before it, else the passage's only one."""
        mentioned = named.baselines(self.text)
        after = [one for one in mentioned if one.start >= figure.start]
        if after or mentioned:
            return after[0] if after else mentioned[-1]
        elsewhere = {one.kind: one for one in named.baselines(self.block)}
        return next(iter(elsewhere.values())) if len(elsewhere) == 1 else None

    def elsewhere(self, measured: Measurement) -> str:
        """Where to look for what the sentence doesn't name; nowhere if it has the kernel's id, which names it."""
        return "" if measured.kernel_id in named.cited(self.text).kernels else self.block

    def cites_kernel(self, measured: Measurement) -> bool:
        """Whether the kernel's id is there, which names its operation, processor, element type and shape."""
        return measured.kernel_id in self.cites.kernels


def unnamed(scope: Scope, measured: Measurement) -> Iterator[Fault]:
    """What isn't named, or is named wrongly."""
    yield from _processor(scope, measured)
    yield from _shape(scope, measured)
    yield from _dtype(scope, measured)
    yield from _operation(scope, measured)


def _processor(scope: Scope, measured: Measurement) -> Iterator[Fault]:
    slug = measured.task.target.gpu
    if match := named.ANY_PROCESSOR.search(scope.text):
        why = f"{match[0]!r}: it was measured on {PROCESSORS[slug].name if slug in PROCESSORS else slug} alone"
        yield Fault(problem="wrong_processor", why=why)
    mentioned = named.processors(scope.text) or named.processors(scope.elsewhere(measured))
    if not mentioned and not scope.cites_kernel(measured):
        yield Fault(problem="no_processor", why=f"it names no processor: it was measured on {slug}")
    for said, claimed in mentioned.items():
        gap = _reach(slug, claimed.slug) if claimed else "nothing was measured there"
        if gap is not None:
            yield Fault(problem="wrong_processor", why=f"{said!r}: {gap}")
    if slug == "cpu" and measured.environment is not None:
        yield from _host(scope.text, measured.environment.cpu_model)


def _reach(measured: str, claimed: str) -> str | None:
    if measured in PROCESSORS:
        return evidence_reach(PROCESSORS[measured], PROCESSORS[claimed])
    return f"it was measured on {measured}"


def _host(text: str, model: str) -> Iterator[Fault]:
    """A host's processor by its family's name."""
    for family in re.findall(r"\b(?:EPYC|Xeon|Ryzen|Graviton|Threadripper)\b", text, re.IGNORECASE):
        if family.lower() not in model.lower():
            yield Fault(problem="wrong_processor", why=f"{family!r}: it was measured on {model}")


def _shape(scope: Scope, measured: Measurement) -> Iterator[Fault]:
    task, wanted = measured.task, measured.timing.shape
    own = named.shape(scope.text, wanted, task.op)
    if own.other is None and own.missing:
        own = named.shape(scope.elsewhere(measured), wanted, task.op)
    if own.other is not None:
        why = f"{own.other!r}: it was measured at {shape_written(wanted)}"
        yield Fault(problem="wrong_shape", why=why)
    elif own.missing and not scope.cites_kernel(measured):
        why = f"it gives no {', '.join(own.missing)}: it was measured at {shape_written(wanted)}"
        yield Fault(problem="no_shape", why=why)


def _dtype(scope: Scope, measured: Measurement) -> Iterator[Fault]:
    wanted = measured.task.dtype
    mentioned = named.dtypes(scope.text) or named.dtypes(scope.elsewhere(measured))
    if mentioned and wanted not in mentioned:
        why = f"{', '.join(sorted(mentioned))}: it was measured in {wanted}"
        yield Fault(problem="wrong_dtype", why=why)
    elif not mentioned and not scope.cites_kernel(measured):
        yield Fault(problem="no_dtype", why=f"it names no element type: it was measured in {wanted}")


def _operation(scope: Scope, measured: Measurement) -> Iterator[Fault]:
    wanted = measured.task.op
    mentioned = named.operations(scope.text) or named.operations(scope.elsewhere(measured))
    if mentioned and wanted not in mentioned:
        yield Fault(problem="wrong_operation", why=f"{', '.join(sorted(mentioned))}: it was measured for {wanted}")
    elif not mentioned and not scope.cites_kernel(measured):
        yield Fault(problem="no_operation", why=f"it names no operation: it was measured for {wanted}")
