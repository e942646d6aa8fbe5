"""Takes held-out shapes, seeds and paths of this machine out of a document before it leaves over HTTP or MCP."""

import re
from collections.abc import Mapping, Sequence

import orjson

from forge.app.runs.recorded_evidence import report_of
from forge.app.workspace import Workspace
from forge.domain.task import HeldOut
from forge.domain.tensors import Shape
from forge.projections.run_lookup import run_state
from forge.projections.runs import RunState

Data = dict[str, object]
WITHHELD = "withheld: it names a held-out shape"
"""Text in place of one that would name a held-out shape."""
SECRET_FIELDS = frozenset({"held_out", "held_out_seed"})
"""Fields from which held-out shapes could be known."""
SIZE = re.compile(r"\w=\d", re.ASCII)
"""Pattern of what every text has that names a shape: the size of an axis."""
PATH_FIELDS = frozenset({"report", "kept_at", "prompt_path", "source_path", "checkpoint_path"})
"""Fields that name files of this machine; callers name files by their kernel or candidate instead."""


def hidden_shapes(workspace: Workspace, run: RunState) -> tuple[Shape, ...]:
    """Return the shapes that a run's candidate is judged at and that are never told."""
    hidden: list[Shape] = []
    if run.task is not None:
        stored = workspace.blobs.get(run.task.event.task.held_out_sha256)
        hidden += HeldOut.model_validate(orjson.loads(stored)).shapes
    for judged in (run.rejection, run.verified):
        report = None if judged is None else report_of(workspace, judged.event)
        drawn = orjson.loads(report).get("held_out") if report is not None else None
        hidden += drawn if isinstance(drawn, list) else []
    return tuple(hidden)


def without_hidden_of(workspace: Workspace, runs: Sequence[RunState], found: Data) -> Data:
    """Return a document about some runs without their held-out shapes."""
    document = without_hidden(found, [shape for run in runs for shape in hidden_shapes(workspace, run)])
    assert isinstance(document, dict)
    return document


def without_hidden_of_runs(workspace: Workspace, found: Data) -> Data:
    """Return a document over many runs, each part that names a run in `run_id` without that run's held-out shapes.

    A run is looked up only for a part in which some text may name a shape.
    """
    known: dict[str, tuple[Shape, ...]] = {}

    def told(part: object) -> object:
        match part:
            case {"run_id": str(run_id)} if _may_name_a_shape(part):
                if run_id not in known:
                    known[run_id] = hidden_shapes(workspace, run_state(workspace.ledger, run_id))
                return without_hidden(part, known[run_id])
            case dict():
                return {name: told(value) for name, value in part.items()}
            case list() | tuple():
                return [told(one) for one in part]
            case _:
                return part

    document = without_hidden(told(found), ())
    assert isinstance(document, dict)
    return document


def _may_name_a_shape(part: object) -> bool:
    match part:
        case str():
            return SIZE.search(part) is not None
        case dict():
            return any(map(_may_name_a_shape, part.values()))
        case list() | tuple():
            return any(map(_may_name_a_shape, part))
        case _:
            return False


def without_hidden(found: object, hidden: Sequence[Shape]) -> object:
    """Return a JSON document without held-out shapes, seeds they are drawn with, and paths of this machine."""
    match found:
        case str():
            return WITHHELD if any(_is_named(shape, found) for shape in hidden) else found
        case dict():
            if any(value == dict(shape) for value in found.values() for shape in hidden):
                return {"withheld": WITHHELD}  # its other fields, a snippet or values, could tell the shape too
            return {name: _field(name, value, hidden) for name, value in found.items() if name not in PATH_FIELDS}
        case list() | tuple():
            return [without_hidden(one, hidden) for one in found]
        case _:
            return found


def _field(name: str, value: object, hidden: Sequence[Shape]) -> object:
    if name in SECRET_FIELDS:
        return None
    return without_hidden(value, hidden)


def _is_named(shape: Mapping[str, int], text: str) -> bool:
    return (
        bool(shape)
        and "=" in text
        and all(re.search(rf"\b{re.escape(axis)}={size}(?!\d)", text) for axis, size in shape.items())
    )
