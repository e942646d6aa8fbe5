"""Reads the docstrings of a value's fields from its source, for documents that describe the value.

pydantic can do so for each class, but only while the class is made: that takes every command milliseconds.
"""

import ast
import inspect
import itertools
import textwrap
from typing import Any

from pydantic import BaseModel


def docstrings_of(model: type[BaseModel]) -> dict[str, str]:
    """Return field -> the docstring below it."""
    return {
        node.target.id: inspect.cleandoc(said.value.value)
        for node, said in itertools.pairwise(class_body(model))
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and isinstance(said, ast.Expr)
        and isinstance(said.value, ast.Constant)
        and isinstance(said.value.value, str)
    }


def class_body(model: type[BaseModel]) -> list[ast.stmt]:
    """Return the statements of a class, from its source."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0]
    assert isinstance(tree, ast.ClassDef)
    return tree.body


def described_schema(model: type[BaseModel], *others: type[BaseModel]) -> dict[str, Any]:  # Any: a JSON document
    """Return a model's JSON schema; fields of the model and of `others` inside it have their docstrings."""
    schema: dict[str, Any] = model.model_json_schema()
    parts = {model.__name__: schema} | schema.get("$defs", {})
    for one in (model, *others):
        properties = parts[one.__name__]["properties"]
        for name, text in docstrings_of(one).items():
            properties[name] = dict(sorted({**properties[name], "description": text}.items()))
    return schema
