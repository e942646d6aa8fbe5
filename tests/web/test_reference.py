"""The pages about serving agree with the code: the API's reference, and what the clients' pages show."""

import json
import re
import runpy
import tomllib

import pytest
from pydantic import BaseModel

from forge.app.agent_clients import CLIENTS, KNOWN
from forge.web import schemas
from tests.web.serving import ROOT

PAGES = {"claude": "claude-code", "vscode": "vs-code"}
COMMAND = ["/usr/bin/python3", "-m", "forge", "mcp", "--home", "/srv/kernels"]


def test_the_reference_of_the_api_is_that_of_the_code() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "api.py"))
    assert script["page"]() == (ROOT / "docs" / "http-api.md").read_text(), "run: python docs/api.py"
    document = script["document"]()
    assert document["openapi"].startswith("3.1")
    for path, methods in document["paths"].items():
        for method, one in methods.items():
            assert one["tags"], path
            assert one["description"], path
            assert {"400", "401", "404", "429", "503"} <= set(one["responses"]), path
            assert method == "get" or one["security"] == [{"token": []}], path


def test_every_parameter_and_form_of_the_api_has_an_example_that_fits() -> None:
    document = runpy.run_path(str(ROOT / "docs" / "api.py"))["document"]()
    forms = {
        one.__name__: one for one in vars(schemas).values() if isinstance(one, type) and issubclass(one, BaseModel)
    }
    used = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert {"Page", "ProblemForm", "Run"} <= used
    for name in used & set(forms):
        if forms[name] is not schemas.AnswerForm:  # it names no field
            (example,) = document["components"]["schemas"][name]["examples"]
            assert set(forms[name].model_validate(example).model_dump()) == set(forms[name].model_fields), name
    for path, methods in document["paths"].items():
        for one in (parameter for method in methods.values() for parameter in method.get("parameters", ())):
            given = one["example"]
            kinds = json.dumps(one["schema"])
            kind = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array"}[type(given)]
            assert f'"type": "{kind}"' in kinds, (path, one["name"])


@pytest.mark.parametrize("client", CLIENTS)
def test_the_page_of_a_client_shows_the_entry_that_is_written(client: str) -> None:
    known = KNOWN[client]  # type: ignore[index]
    page = (ROOT / "docs" / "how-to" / f"use-it-from-{PAGES.get(client, client)}.md").read_text()
    shown = page.partition("```text\n")[2].partition("```")[0]
    document = tomllib.loads(shown) if known.file.endswith(".toml") else json.loads(shown)
    assert document == {known.section: {"forge": known.entry(COMMAND)}}
    assert f"`{known.file}`" in page
    assert f"`{known.skills}/forge-kernels`" in page
