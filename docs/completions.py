"""Writes what `forge/cli` reads instead of the code: what a shell may complete, the operations and the skills."""

import inspect
import json
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import forge
from forge.cli import command_tree
from forge.cli.lists import KERNEL_COLUMNS, RUN_COLUMNS, TASK_COLUMNS
from forge.cli.operation import described
from forge.cli.skill import described_skill
from forge.domain.digest import sha256
from forge.domain.verdict import REASON_CODES
from forge.languages import LANGUAGES
from forge.operations import OPERATIONS
from forge.pipeline.skills import embedded_skills
from forge.platforms import PROCESSORS
from forge.projections.runs import Stage
from forge.projections.standing import Status

PACKAGE = Path(forge.__file__).parent
COLUMNS = {"run list": RUN_COLUMNS, "task list": TASK_COLUMNS, "kernel list": KERNEL_COLUMNS}
KINDS = {
    **dict.fromkeys(("run", "a", "b", "runs"), "run"),
    "task": "task",
    "target": "task|run",
    "kernel_id": "kernel",
    "kernel": "kernel",
    "superseded_by": "kernel",
    "op": "op",
    "gpu": "gpu",
    "dtype": "dtype",
    "language": "language",
    "session": "session",
    "code": "code",
    "state": "state",
    "status": "status",
    "skill": "skill",
    "shape": "axis",
}
"""Name of a parameter -> the kind of its values."""


def table() -> str:
    """Return the document, the same for the same code."""
    document = {
        "commands": {path: _command(path, command) for path, command in _walk(command_tree(), "")},
        "values": {
            "run": ["last"],
            "op": list(OPERATIONS),
            "gpu": ["cpu", *(name for name in PROCESSORS if name != "cpu")],
            "dtype": list(dict.fromkeys(dtype for one in OPERATIONS.values() for dtype in one.dtypes)),
            "language": list(LANGUAGES),
            "state": list(typing.get_args(Stage)),
            "status": list(typing.get_args(Status)),
            "code": list(REASON_CODES),
            "skill": sorted(skill.id for skill in embedded_skills()),
        },
        "axes": {name: list(one.axes) for name, one in OPERATIONS.items()},
    }
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def operations() -> str:
    """Return what is known of each operation of the catalogue, as `forge op show --json` prints it."""
    return json.dumps([described(one) for one in OPERATIONS.values()], indent=1, ensure_ascii=False) + "\n"


def skills() -> str:
    """Return what `forge skill list --json` prints of each skill that ships, with the place of its file."""
    files = (*PACKAGE.glob("skills/*.md"), *PACKAGE.glob("languages/*/playbook.md"))
    places = {sha256(file.read_bytes()): file.relative_to(PACKAGE).as_posix() for file in files}
    listed = [{**described_skill(one), "file": places[one.sha256]} for one in embedded_skills()]
    return json.dumps(listed, indent=1, ensure_ascii=False) + "\n"


def _walk(command: Any, path: str) -> Iterator[tuple[str, Any]]:  # Any: Typer's command classes are private
    children: Mapping[str, Any] = getattr(command, "commands", {})
    if not children:
        yield path, command
    for name, child in children.items():
        if child.hidden:
            continue
        yield from _walk(child, f"{path} {name}".strip())


def _command(path: str, command: Any) -> dict[str, object]:  # Any: as above
    hints = typing.get_type_hints(inspect.unwrap(command.callback))
    asked = [one for one in command.params if one.name in hints]
    options = [one for one in asked if one.param_type_name == "option"]
    arguments = [one for one in asked if one.param_type_name == "argument"]
    return {
        "options": {name: _kind(path, one, hints[one.name]) for one in options for name in one.opts},
        "repeated": sorted(name for one in options if one.multiple for name in one.opts),
        "arguments": [_kind(path, one, hints[one.name]) for one in arguments],
        "many": any(one.nargs == -1 for one in arguments),
    }


def _kind(path: str, parameter: Any, annotation: object) -> object:  # Any: as above
    """Return the kind of a parameter's values, or the values; an empty text for an option without a value."""
    if getattr(parameter, "is_flag", False):
        return ""
    choices = [one for one in _parts(annotation) if isinstance(one, str)]
    if choices:
        return choices
    if parameter.name == "sort":
        return list(COLUMNS[path])
    kind = KINDS.get(parameter.name.strip("_"), "text")
    return "run|kernel" if kind == "run" and "kernel's id" in (parameter.help or "") else kind


def _parts(annotation: object) -> Iterator[object]:
    arguments = typing.get_args(annotation)
    if not arguments:
        yield annotation
    for argument in arguments:
        yield from _parts(argument)
