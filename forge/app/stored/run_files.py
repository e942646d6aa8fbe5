"""Compares a run's folder with the ledger: files that events name by digest, and files that repeat events.

Any process in the workspace can write to the folder until it is sealed, and a crash may come between an event and its
files. So its content isn't trusted: before sealing, these files are written again from blobs and events.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from forge.app.stored.run_documents import RunDocuments, of_state
from forge.domain.content import canonical_document, sha256
from forge.errors import PhaseOutOfOrder
from forge.ledger.blobs import BlobStore
from forge.ledger.runs.directory import CANDIDATE, RunDirectory, check

if TYPE_CHECKING:
    from forge.projections.runs import RunState


def recorded_digests(run: RunDocuments) -> dict[str, str]:
    """Return the files that events of the run name -> their digests."""
    named: dict[str, str | None] = {}
    prompt, rejected = run.get("PromptRendered"), run.get("CandidateRejected")
    verified = run.get("CandidateVerified")
    if prompt is not None:
        named["agent_prompt.md"] = prompt.event["rendered_sha256"]
    if run.submitted is not None:
        named |= {f"{CANDIDATE}{one['path']}": one["sha256"] for one in run.submitted.event["files"]["files"]}
    if rejected is not None and rejected.event["stage"] != "submit":
        named["verification_report.json"] = rejected.event["report_sha256"]
    elif verified is not None:
        named["verification_report.json"] = verified.event["report_sha256"]
    if run.timing is not None:
        newest, stopped = run.timing.event, run.timing.event.get("stopped")
        named["benchmark_report.json"] = newest["report_sha256"]
        if newest["workloads"]:
            named["benchmark_samples.json"] = newest["workloads"][0]["samples_sha256"]
        elif stopped is not None:
            named["benchmark_samples.json"] = stopped["samples_sha256"]
    return {name: digest for name, digest in named.items() if digest is not None}


def put_back(directory: RunDirectory, run: "RunState", blobs: BlobStore) -> None:
    """Write the files that the ledger knows into the open folder, and remove others beside the candidate's own."""
    if directory.is_sealed:
        return
    recorded = recorded_digests(of_state(run))
    if run.submitted is not None:
        directory.clear_candidate(recorded)
    for name, digest in recorded.items():
        if not directory.holds(name, digest):
            directory.write(name, blobs.get(digest))
    for name, content in _told(run, blobs).items():
        if not directory.holds(name, sha256(content)):
            directory.write(name, content)


def _told(run: "RunState", blobs: BlobStore) -> dict[str, bytes]:
    """Return the files that repeat what events say."""
    files: dict[str, bytes] = {}
    if run.task is not None:
        files["task.json"] = _readable(run.task.event.task.model_dump(mode="json"))
    if run.plan is not None:
        from forge.pipeline.plan import listed  # the catalogue comes with it

        files["skills.json"] = listed(run.plan.event)
    if run.promotion is not None:
        files["promotion.json"] = _readable(run.promotion.event.model_dump(mode="json"))
    rejected = run.rejection.event if run.rejection is not None else None
    if rejected is not None and rejected.stage == "submit":
        files["submission_report.json"] = canonical_document(rejected.model_dump(mode="json"))
    if rejected is not None and rejected.counterexample_sha256 is not None:
        counterexample = orjson.loads(blobs.get(rejected.counterexample_sha256))
        files["counterexample.py"] = counterexample["snippet"].encode()
    return files


def _readable(document: object) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_INDENT_2)


def check_run(runs_root: Path, run: RunDocuments) -> list[dict[str, str]]:
    """Return how a sealed run's directory differs from its manifest and from events; empty if nothing does.

    Raises PhaseOutOfOrder for a run that isn't sealed.
    """
    sealed = run.get("RunSealed")
    if sealed is None:
        raise PhaseOutOfOrder(
            f"run {run.run_id!r} is {run.state} and not sealed: expected one that has come to its end",
            hint=f"forge run show {run.run_id}",
        )
    found = check(runs_root / run.run_id, sealed.event["manifest_sha256"], recorded=recorded_digests(run))
    return [{"kind": problem.kind, "path": problem.path} for problem in found]
