"""Lets a model say what limits a right kernel: it cites metrics that it was shown, and recommends one change."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, StringConstraints, ValidationError

from forge.authors.answer import one_line
from forge.domain.digest import Value
from forge.domain.feedback import Metric, ShownDiagnosis, ShownTiming
from forge.domain.profile import Bottleneck

VARIANT = "diagnose"
"""Name of the wording with which a diagnosis is asked for."""
REQUEST = """Say what limits this kernel, by the metrics below alone. Answer with one JSON object:

{"bottleneck": "memory", "metrics": ["timing.floor_share"], "recommendation": "one thing to change, and why"}

- bottleneck is memory, compute, sync, launch or latency, or null if the metrics don't tell.
- metrics has the ids of those that show it, at least one. An id that isn't below is refused.
- recommendation is one change. Write no code."""
_BLOCK = re.compile(r"```(?:json)?\s*+(?=\{)")
"""Beginning of a block that holds an object. The object's end is found by parsing it, in one pass."""


class _Said(Value):
    bottleneck: Bottleneck | None
    metrics: Annotated[
        tuple[Annotated[str, StringConstraints(max_length=100)], ...], Field(min_length=1, max_length=16)
    ]
    recommendation: Annotated[str, StringConstraints(min_length=1, max_length=2000)]


@dataclass(frozen=True)
class GivenDiagnosis:
    """An analyst whose diagnosis was made already."""

    diagnosis: ShownDiagnosis

    def diagnose(self, timing: ShownTiming, profile: Sequence[Metric]) -> ShownDiagnosis:
        """Return the diagnosis, whose numbers are those that the model was shown."""
        del timing, profile
        return self.diagnosis


def diagnosis_prompt(kernel: str, shown: Sequence[Metric]) -> str:
    """Return the prompt that asks for a diagnosis of a right kernel."""
    rows = "\n".join(f"| `{one.id}` | {one.value:.6g} | {one.unit} |" for one in shown)
    return f"{REQUEST}\n\n# Metrics\n\n| id | value | unit |\n|---|---|---|\n{rows}\n\n# kernel.py\n\n{kernel}\n"


def read_diagnosis(untrusted_text: str, shown: Sequence[Metric]) -> ShownDiagnosis | str:
    """Return a diagnosis with the cited metrics as they were measured, or why the answer is none."""
    found = _BLOCK.search(untrusted_text)
    try:
        if found:
            document, _ = json.JSONDecoder().raw_decode(untrusted_text, found.end())
        else:
            document = json.loads(untrusted_text)
        said = _Said.model_validate(document)
    except (ValueError, RecursionError) as error:
        what = "doesn't fit" if isinstance(error, ValidationError) else "isn't one JSON object"
        return f"the diagnosis {what}: expected bottleneck, metrics and one recommendation"
    known = {one.id: one for one in shown}
    unknown = [name for name in said.metrics if name not in known]
    if unknown:
        return f"the diagnosis cites {one_line(unknown[0])!r}, which wasn't measured: expected {', '.join(known)}"
    cited = tuple(known[name] for name in dict.fromkeys(said.metrics))
    return ShownDiagnosis(
        bottleneck=said.bottleneck, metrics=cited, recommendation=one_line(said.recommendation) or "none"
    )
