"""That the audit's list of fields that name stored bytes is complete, and that each missing blob is found."""

import json
import re
import types
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from forge.events import EVENT_TYPES
from forge.ledger.audit.history import audit
from forge.ledger.audit.referenced_blobs import STORED_FIELDS, listed_blobs, required_blobs, values_at
from forge.ledger.blobs import BlobStore

from .making import GOLDEN, examples, open_ledger

ELSEWHERE = {
    "config_sha256": "a model's configuration, which its stored file holds",
    "uses[].sha256": "a kernel's source, which its promotion names",
    "env_sha256": "the canonical text of an environment, which stands in an EnvironmentCaptured event",
    "environment.host_sha256": "a host's name, which isn't told",
    "author_sha256": "what an author was made from: its template and options, which the steps show",
    "process_sha256": "random bytes that name a process, which aren't kept",
    "seeds_sha256": "the seeds, which stand in the report",
    "gates_sha256": "the judge's own source, which is part of Forge",
    "normalised_sha256": "a candidate's text without names and comments: it only tells twins",
    "template_sha256": "a template's text, which is part of Forge",
    "variables_sha256": "what a brief was rendered with; the brief itself is stored",
    "skills[].sha256": "a playbook's text, which its library holds",
    "libraries[].sha256": "the ids and digests of a library's playbooks",
    "before_sha256": "a playbook's text before a lesson, which its library holds or an earlier lesson stored",
    "key_sha256": "a graph, an author's prompt and a platform, by which a module's route is found again",
    "token_sha256": "a token, which is shown once and kept nowhere",
    "bundle_sha256": "a bundle's bytes, which are taken apart and not kept",
    "task.reference_sha256": "a reference's text, which is part of Forge; an own operation's is listed as `own`",
    "task.inputs_sha256": "a generator's text, which is part of Forge; an own operation's is listed as `own`",
    "task.tolerance_sha256": "the derivation of a bound, which follows from the task and the policy",
}
"""Digests of what isn't stored by content, and where it is instead."""


def fields_of(model: object, path: str = "") -> Iterator[str]:
    """The dotted path of every field called `*sha256` in a model, and in what its fields are made of."""
    if isinstance(model, type) and issubclass(model, BaseModel):
        for name, field in model.model_fields.items():
            here = f"{path}.{name}" if path else name
            if name.endswith("sha256"):
                yield here
            yield from fields_of(field.annotation, here)
        return
    origin, arguments = typing.get_origin(model), typing.get_args(model)
    if origin in (types.UnionType, typing.Union, typing.Annotated):
        for argument in arguments:
            yield from fields_of(argument, path)
    elif origin in (tuple, list):
        yield from fields_of(arguments[0], f"{path}[]")
    elif origin is dict:
        yield from fields_of(arguments[1], f"{path}{{}}")


def fields_in(node: object, path: str = "") -> Iterator[str]:
    """The same of a payload."""
    if isinstance(node, dict):
        for name, value in node.items():
            here = f"{path}.{name}" if path else name
            if name.endswith("sha256"):
                yield here
            yield from fields_in(value, here)
    elif isinstance(node, list):
        for value in node:
            yield from fields_in(value, f"{path}[]")


def old_payloads() -> list[Path]:
    return sorted(GOLDEN.glob("*.json"))


@pytest.mark.parametrize("name", EVENT_TYPES)
def test_every_digest_of_every_event_is_known_to_name_stored_bytes_or_not(name: str) -> None:
    found = set(fields_of(EVENT_TYPES[name]))
    for golden in old_payloads():
        if golden.name.startswith(f"{name}."):
            found |= set(fields_in(json.loads(golden.read_bytes())))
    listed = STORED_FIELDS.get(name)
    stored = {*listed.stored, *listed.left_out} if listed else set()
    assert found - stored - ELSEWHERE.keys() == set()


def test_neither_list_names_a_field_that_no_event_has() -> None:
    everywhere = {name: set(fields_of(event)) for name, event in EVENT_TYPES.items()}
    for name, listed in STORED_FIELDS.items():
        assert {*listed.stored, *listed.own, *listed.left_out, *listed.since} <= everywhere[name], name
    used = set().union(*everywhere.values())
    assert {field for field in ELSEWHERE if field not in used} == set()


def test_every_old_payload_gives_a_digest_for_each_field_that_it_must_have() -> None:
    for golden in old_payloads():
        name, version, _ = golden.name.split(".")
        for field, digest in required_blobs(name, int(version[1:]), json.loads(golden.read_bytes())):
            assert re.fullmatch("[0-9a-f]{64}", digest), (golden.name, field)


def test_an_own_operations_task_names_its_reference_and_its_contract() -> None:
    payload = examples()["TaskCreated"].model_dump(mode="json")
    of_catalogue = dict(required_blobs("TaskCreated", 2, payload))
    payload["task"]["op"] = "own_gate"
    assert set(dict(required_blobs("TaskCreated", 2, payload))) - set(of_catalogue) == set(
        STORED_FIELDS["TaskCreated"].own
    )


def test_a_missing_piece_of_what_was_built_is_found(path: Path, tmp_path: Path) -> None:
    runs = tmp_path / "forge_runs"
    blobs = BlobStore(runs / "cas")
    cubin, image = blobs.put(b"cubin"), blobs.put(b"image")
    plan = blobs.put(json.dumps({"cubins": {"plan0.cubin": cubin}}).encode())
    files = [{"path": "plan.json", "sha256": plan}, {"path": "libkernel.so", "sha256": image}]
    listing = blobs.put(json.dumps({"files": files}).encode())
    event = examples()["CandidateVerified"].model_copy(
        update={
            "artifact_sha256": listing,
            "report_sha256": blobs.put(b"report"),
            "policy_sha256": blobs.put(b"policy"),
        }
    )
    with open_ledger(path) as ledger:
        ledger.append([event], actor="cli:ada", correlation_id="r")
    assert audit(path, runs=runs).problems == ()
    for digest, what in (
        (image, "blob artifact_sha256.files[].sha256"),
        (plan, "blob artifact_sha256.files[].sha256"),
        (cubin, "blob plan_sha256.cubins{}"),
        (event.policy_sha256, "blob policy_sha256"),
    ):
        stored = runs / "cas" / digest[:2] / digest
        content = stored.read_bytes()
        stored.unlink()
        problem = audit(path, runs=runs).problems[0]
        assert (problem.seq, problem.what, problem.expected, problem.found) == (2, what, digest, "missing")
        stored.write_bytes(content)


@pytest.mark.parametrize("content", [b"no JSON", b"[1]", b"{}", b'{"files":1}', b'{"files":[1]}', b'{"files":[{}]}'])
def test_a_listing_that_is_none_names_a_blob_that_is_missing(content: bytes) -> None:
    assert [digest for _, digest in listed_blobs("artifact_sha256", content) if len(digest) == 64] == []
    assert list(listed_blobs("artifact_sha256", content))


def test_values_at_a_path() -> None:
    document = {"a": [{"b": "x"}, {"b": "y"}], "c": {"p": "u", "q": "v"}}
    assert list(values_at(document, "a[].b")) == ["x", "y"]
    assert list(values_at(document, "c{}")) == ["u", "v"]
    assert list(values_at(document, "d.e")) == ["no such field"]
