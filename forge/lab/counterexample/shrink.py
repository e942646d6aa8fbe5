"""Finds the smallest case that still fails, so that an author gets it instead of thousands of numbers.

Hypothesis proposes smaller shapes and simpler values, and the live candidate is asked each time. The verdict stands
already, and nothing here can change it. If nothing smaller fails, or the guest dies, the first counterexample is
kept.
"""

from __future__ import annotations

import dataclasses
import math
import random
import tempfile
import time
import unittest
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from forge.domain.evidence import Counterexample
from forge.domain.verdict import ReasonCode
from forge.errors import EnvironmentUnfit
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.counterexample.program import written_out
from forge.lab.finding import Failed
from forge.lab.inputs.draw import draw
from forge.lab.observed import Case, Observed

if TYPE_CHECKING:
    import torch
    from hypothesis.strategies import SearchStrategy

BUDGET_S = 5.0
"""Seconds that a search may take, at most. Chosen; a refusal waits for it."""
REPLY_S = 2.0
"""Seconds to wait for the answer to a smaller question; one that takes longer isn't a better counterexample."""
EXAMPLES = 300
"""Number of questions of a search, at most. Chosen; `BUDGET_S` bounds the search's time, whatever its questions
cost."""
SHRINKABLE: frozenset[ReasonCode] = frozenset({"INCORRECT_NUMERICAL", "NON_FINITE"})
"""Reason codes whose counterexamples can be made smaller."""
Style = Literal["zeros", "ones", "one nonzero", "small integers", "drawn"]
"""Way in which the values of a smaller case are made, the simplest first; `drawn` is as in the first
counterexample."""
STYLES: tuple[Style, ...] = get_args(Style)


class _OutOfTime(unittest.SkipTest):
    """Ends Hypothesis's search at once: it lets this one exception through."""


@dataclasses.dataclass(frozen=True)
class _Smaller:
    """A smaller question with a wrong answer."""

    observed: Observed
    failed: Failed
    style: Style

    @property
    def size(self) -> tuple[int, int]:
        return math.prod(self.observed.case.shape.values()), STYLES.index(self.style)


def shrink(kernel: LoadedKernel, failed: Failed) -> Failed:
    """Return the same failure with the smallest counterexample found within the budget."""
    case, first = failed.case, failed.counterexample
    if case is None or first is None or failed.reason.code not in SHRINKABLE:
        return failed
    search = _Search(kernel, case, stop_s=time.monotonic() + BUDGET_S)
    found = search.run()
    if found is None:
        return failed
    smaller = _described(kernel, found, first, case)
    return dataclasses.replace(failed, counterexample=smaller)


class _Search:
    """One search for smaller failing questions; it remembers the best one, however the search ends."""

    def __init__(self, kernel: LoadedKernel, case: Case, *, stop_s: float) -> None:
        self._kernel = kernel
        self._case = case
        self._stop_s = stop_s
        self._best: _Smaller | None = None
        self._gone = False

    def run(self) -> _Smaller | None:
        """Return the best question that was found and failed twice."""
        from hypothesis import HealthCheck, Phase, find, settings
        from hypothesis.configuration import set_hypothesis_home_dir
        from hypothesis.errors import HypothesisException

        self._kernel.session.patience_s = REPLY_S
        quiet = settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        with tempfile.TemporaryDirectory(prefix="forge-shrink-") as scratch:
            set_hypothesis_home_dir(Path(scratch))  # otherwise it leaves a folder in the working directory
            try:
                find(_questions(self._case.shape), self._fails, settings=quiet, random=random.Random(0))  # noqa: S311
            except (_OutOfTime, HypothesisException):
                pass  # the best so far is the result
            finally:
                set_hypothesis_home_dir(None)
        return self._confirmed()

    def _fails(self, question: tuple[tuple[tuple[str, int], ...], Style]) -> bool:
        if self._gone or time.monotonic() > self._stop_s:
            raise _OutOfTime("no more questions")
        shape, style = dict(question[0]), question[1]
        found = self._ask(shape, style)
        if found is not None and (self._best is None or found.size < self._best.size):
            self._best = found
        return found is not None

    def _ask(self, shape: Mapping[str, int], style: Style) -> _Smaller | None:
        try:
            observed = self._kernel.call([_made(self._kernel, self._case, shape, style)])
        except EnvironmentUnfit:  # too late an answer: the counterexample at hand stands
            self._gone = True
            return None
        if isinstance(observed, Failed):
            self._gone = observed.counterexample is None
            return None
        wrong = self._kernel.judge(observed[0])[1]
        return _Smaller(observed[0], wrong, style) if wrong is not None else None

    def _confirmed(self) -> _Smaller | None:
        best = self._best
        if best is None or self._gone:
            return None
        return self._ask(best.observed.case.shape, best.style)


def _questions(shape: Mapping[str, int]) -> SearchStrategy[tuple[tuple[tuple[str, int], ...], Style]]:
    """Return every shape up to the first one.

    Along each axis half of the draws have its size, so that some question fails.
    """
    from hypothesis import strategies as st

    sizes = (
        st.tuples(st.just(axis), st.integers(0, 2 * size).map(partial(_within, size)))
        for axis, size in sorted(shape.items())
    )
    return st.tuples(st.tuples(*sizes), st.sampled_from(STYLES))


def _within(size: int, drawn: int) -> int:
    return min(max(drawn, min(1, size)), size)


def _made(kernel: LoadedKernel, case: Case, shape: Mapping[str, int], style: Style) -> Case:
    """Return the question at another shape, with values of a style; everything else stays the same."""
    shape = kernel.inside.within(shape)
    drawn = draw(kernel.operation, shape, kernel.dtype, case.kind, seed=case.seed)
    if style == "drawn":
        return dataclasses.replace(case, shape=dict(shape), inputs=drawn)
    rows = kernel.operation.row_axis
    inputs = tuple(
        _filled(spec.sizes(shape), style, is_weight=rows not in spec.axes).to(tensor.dtype)
        if spec.follows_kind
        else tensor
        for spec, tensor in zip(kernel.operation.inputs, drawn, strict=True)
    )
    return dataclasses.replace(case, shape=dict(shape), inputs=inputs, kind="constant")


def _filled(sizes: tuple[int, ...], style: Style, *, is_weight: bool) -> torch.Tensor:
    import torch

    if style == "small integers":
        counted = torch.arange(int(torch.Size(sizes).numel()), dtype=torch.float32).reshape(sizes)
        return counted % 3 + 1 if is_weight else counted * 7 % 5 - 2
    if is_weight or style == "ones":
        return torch.ones(sizes)
    values = torch.zeros(sizes)
    if style == "one nonzero" and values.numel():
        values.view(-1)[-1] = 1.0
    return values


def _described(kernel: LoadedKernel, found: _Smaller, first: Counterexample, case: Case) -> Counterexample:
    wrong = found.failed.counterexample
    assert wrong is not None
    smaller = written_out(kernel, found.observed, wrong)
    seed = case.seed if found.style == "drawn" else None
    inputs = first.inputs if found.style == "drawn" else found.style
    is_smaller = found.size < (math.prod(case.shape.values()), STYLES.index("drawn"))
    changed = {"inputs": inputs, "seed": seed, "shrunk_from": first.shape if is_smaller else None}
    return smaller.model_copy(update=changed)
