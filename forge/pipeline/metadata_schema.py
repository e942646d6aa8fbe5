"""The schema of metadata.json for one task: the published schema without the parts that can't apply."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from forge.domain.candidate import BUILDS, Metadata
from forge.domain.field_docstrings import described_schema
from forge.domain.kernel_domain import AxisDomain, KernelDomain
from forge.domain.task import Task


def metadata_schema(task: Task) -> str:
    """Return the JSON schema for the task, one property on each line."""
    schema = published_schema()
    properties, parts = dict(schema["properties"]), dict(schema.get("$defs", {}))
    for language, build in BUILDS.items():
        if language != task.language:
            del properties[language], parts[build.__name__]
    document = {
        "type": "object",
        "additionalProperties": False,
        "required": schema["required"],
        "properties": {**properties, "op": {"const": task.op}, "language": {"const": task.language}},
        "$defs": parts,
    }
    return _lines(_plain(document))


@cache
def published_schema() -> Mapping[str, Any]:  # Any: a JSON document
    """Return the published schema; making it takes most of a brief's time."""
    return described_schema(Metadata, AxisDomain, *BUILDS.values(), KernelDomain)


def _plain(node: object) -> object:
    """Remove generated titles, and the null alternative of optional fields."""
    if isinstance(node, list):
        return [_plain(one) for one in node]
    if not isinstance(node, dict):
        return node
    options = node.get("anyOf", [])
    if len(options) == 2 and {"type": "null"} in options:
        (option,) = (one for one in options if one != {"type": "null"})
        node = {**option, **{name: one for name, one in node.items() if name not in ("anyOf", "default")}}
    return {name: _plain(one) for name, one in node.items() if not (name == "title" and isinstance(one, str))}


def _lines(document: object) -> str:
    """Return JSON with the first two levels on lines of their own."""
    assert isinstance(document, dict)
    parts = []
    for name, one in document.items():
        if name in ("properties", "$defs"):
            inner = ",\n".join(f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in one.items())
            parts.append(f"  {json.dumps(name)}: {{\n{inner}\n  }}")
        else:
            parts.append(f"  {json.dumps(name)}: {json.dumps(one)}")
    return "{\n" + ",\n".join(parts) + "\n}"
