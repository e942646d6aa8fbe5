"""Accept or refuse the files of a folder as a candidate.

The content of metadata.json isn't trusted either. A refusal is an event that names the file and its fault. An
accepted candidate is copied, so later edits of the folder change nothing.
"""

import ast
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import orjson
from pydantic import ValidationError

from forge.domain.candidate import BUILDS, Candidate, CandidateFile, Metadata
from forge.domain.candidate_files import REQUIRED_FILES
from forge.domain.digest import Digest, canonical, digest_of, sha256
from forge.domain.misfit import misfit, shortened
from forge.domain.parsed_source import parse_source
from forge.domain.task import Task
from forge.domain.verdict import Reason
from forge.errors import UsageError
from forge.events import CandidateDuplicated, CandidateRejected, CandidateSubmitted, ClaimRecorded, Event
from forge.lab.sources.fingerprint import normalised_sha256
from forge.languages import LANGUAGES
from forge.ledger.actor_rights import MAY_WRITE, ActorClass
from forge.operations import find_operation
from forge.pipeline.candidate_folder import BadFolder, read_folder
from forge.pipeline.domain import domain_fault
from forge.pipeline.outcome import Outcome

MODEL_ENTRY = "ModelNew"
"""Name of the entry point for a reference that is a module."""
AGENT_CLASS: ActorClass = "agent"
"""Class of the writers that programs are."""
SHOWN = 200
"""Largest number of characters of submitted text in a refusal: enough to recognise it, on a few lines."""


def default_entry(untrusted_kernel: bytes, task: Task) -> str:
    """Return the entry point of a kernel.py whose metadata names none: the operation's name.

    For an own operation also the reference's function, or ModelNew, if kernel.py defines that instead.
    """
    own = find_operation(task.op).own
    if own is None:
        return task.op
    named = MODEL_ENTRY if own.contract.form == "model" else own.contract.entry
    try:
        body = parse_source(untrusted_kernel).body
    except SyntaxError:
        return task.op
    defined = {one.name for one in body if isinstance(one, ast.FunctionDef | ast.ClassDef)}
    return named if named in defined and task.op not in defined else task.op


def submit(
    untrusted_folder: Path,
    *,
    task: Task,
    run_id: str,
    untrusted_author: str,
    judged_before: Callable[[Digest], int | None],
) -> Outcome:
    """Accept or refuse the five files of a folder.

    `judged_before` returns the sequence number of the event that judged a candidate of this task. Raises
    UsageError if the folder isn't one.
    """
    if not untrusted_folder.is_dir():
        raise UsageError(f"{str(untrusted_folder)!r} is not a folder: expected one with {', '.join(REQUIRED_FILES)}")
    author = _parse_author(untrusted_author)
    files, problem = read_folder(untrusted_folder)
    parsed = problem or _of_own_author(_parse_metadata(files["metadata.json"], task), author)
    if isinstance(parsed, BadFolder):
        return _refusal(parsed.message, files, task=task, run_id=run_id)
    candidate = Candidate(
        files=tuple(_describe(name, files[name]) for name in REQUIRED_FILES),
        language=task.language,
        entry_point=parsed.entry_point or default_entry(files["kernel.py"], task),
    )
    submitted = _submitted(
        candidate, parsed, files["kernel.py"], task=task, run_id=run_id, author=parsed.author or author
    )
    events: list[Event] = [submitted]
    earlier_seq = judged_before(candidate.sha256)
    if earlier_seq is not None:
        events.append(
            CandidateDuplicated(
                run_id=run_id, task_id=task.task_id, candidate=candidate.sha256, earlier_seq=earlier_seq
            )
        )
    events += _claims(parsed, task=task, run_id=run_id, candidate=candidate.sha256, claimant=submitted.author)
    stored = {f"candidate/{name}": files[name] for name in REQUIRED_FILES}
    return Outcome(events=tuple(events), files=stored, blobs=tuple(files[name] for name in REQUIRED_FILES))


def _submitted(
    candidate: Candidate, parsed: Metadata, untrusted_kernel: bytes, *, task: Task, run_id: str, author: str
) -> CandidateSubmitted:
    """Return the event of an accepted candidate, with what its metadata says of where it comes from."""
    return CandidateSubmitted(
        run_id=run_id,
        task_id=task.task_id,
        candidate=candidate.sha256,
        files=candidate,
        author=author,
        parents=parsed.parents,
        hypothesis=parsed.hypothesis,
        layer=parsed.layer_changed,
        axis=parsed.axis,
        normalised_sha256=normalised_sha256(
            untrusted_kernel.decode(), metadata=parsed, entry_point=candidate.entry_point
        ),
    )


def _claims(parsed: Metadata, *, task: Task, run_id: str, candidate: Digest, claimant: str) -> list[ClaimRecorded]:
    """Return what the metadata claims of the candidate."""
    return [
        ClaimRecorded(
            run_id=run_id,
            candidate=candidate,
            claim_id=f"{run_id}:metadata:{position}",
            metric=claim.metric,
            value=claim.value,
            unit="ratio" if claim.metric == "speedup" else "us",
            workload=task.family,
            baseline=claim.baseline,
            claimant=claimant,
        )
        for position, claim in enumerate(parsed.claims)
    ]


def _of_own_author(parsed: Metadata | BadFolder, author: str) -> Metadata | BadFolder:
    """Return the metadata, unless it names another writer of events as its author, such as `system:gate`.

    A person may say which model wrote a candidate; a model may not say that it is another one.
    """
    named = "" if isinstance(parsed, BadFolder) or parsed.author is None else parsed.author
    kind, colon, _ = named.partition(":")
    taken = colon and kind in MAY_WRITE and (kind != AGENT_CLASS or author.startswith(f"{AGENT_CLASS}:"))
    if taken and named != author:
        return BadFolder(
            f"metadata.json: author is {named!r}, the name of another writer of events; expected your own"
        )
    return parsed


def _parse_author(untrusted_author: str) -> str:
    if not (1 <= len(untrusted_author) <= SHOWN and untrusted_author.isprintable()):
        raise UsageError(f"bad author {untrusted_author[:SHOWN]!r}: expected 1 to {SHOWN} printable characters")
    return untrusted_author


def _describe(name: str, content: bytes) -> CandidateFile:
    return CandidateFile(path=name, sha256=sha256(content), size_bytes=len(content))


def _parse_metadata(untrusted: bytes, task: Task) -> Metadata | BadFolder:
    try:
        document = orjson.loads(untrusted)
    except orjson.JSONDecodeError as error:
        return BadFolder(f"metadata.json: not JSON ({error})")
    if not isinstance(document, dict):
        kind = type(document).__name__
        return BadFolder(f"metadata.json: expected an object, got {kind} {shortened(document)}")
    try:
        json.loads(untrusted, object_pairs_hook=_named_once, parse_int=str)
    except (ValueError, RecursionError) as error:
        return BadFolder(f"metadata.json: {error}")
    language = document.get("language")
    if isinstance(language, str) and language not in LANGUAGES:
        *names, last = map(repr, LANGUAGES)
        return BadFolder(f"metadata.json: language: got {shortened(language)}, expected {', '.join(names)} or {last}")
    try:
        metadata = Metadata.model_validate(document)
    except ValidationError as error:
        return BadFolder(f"metadata.json: {misfit(error, Metadata)}")
    for field, said, wanted in (("op", metadata.op, task.op), ("language", metadata.language, task.language)):
        if said != wanted:
            return BadFolder(f"metadata.json: {field} is {said!r}, the task's is {wanted!r}")
    for field in BUILDS:
        if getattr(metadata, field) is not None and task.language != field:
            return BadFolder(
                f"metadata.json: {field} is only for the language {field}, the task's is {task.language!r}"
            )
    fault = None if metadata.domain is None else domain_fault(metadata.domain, task)
    return metadata if fault is None else BadFolder(f"metadata.json: domain: {fault}")


def _named_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object's fields; raise ValueError if one occurs twice, because parsers differ on which one counts."""
    named = dict(pairs)
    if len(named) != len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"{shortened(twice)} is given more than once: expected each field once")
    return named


def _refusal(message: str, files: dict[str, bytes], *, task: Task, run_id: str) -> Outcome:
    handed_in: list[object] = [[name, sha256(content)] for name, content in sorted(files.items())]
    event = CandidateRejected(
        run_id=run_id,
        task_id=task.task_id,
        candidate=digest_of([*handed_in, message]),
        stage="submit",
        reason=Reason(code="BAD_SUBMISSION", message=message),
    )
    return Outcome(events=(event,), files={"submission_report.json": canonical(event)})
