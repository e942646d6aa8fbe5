"""A profile is recorded beside a verified candidate and changes nothing about its run."""

from pathlib import Path

import orjson
import pytest

from forge.app.phases.profile import profile_candidate
from forge.app.workspace import Workspace
from forge.errors import EnvironmentUnfit, PhaseOutOfOrder, UnknownName
from forge.events import CandidateVerified, ProfileCaptured
from forge.executor.local import LocalExecutor
from forge.pipeline.profile import profile
from forge.sandbox.reply import ArtifactFile
from tests.app.prepared import gathered, rejected_run, verified_run

CUBIN = Path(__file__).parents[1] / "lab" / "recorded" / "add_one.cubin"
"""Compiled by Triton 3.9 for sm_90: y = x + 1, four floats at a time."""


def quiet(_: str) -> None:
    pass


def test_machine_code_is_read_from_the_cubin_and_kept_in_full(own: Path) -> None:
    pytest.importorskip("triton", reason="cuobjdump comes with it")
    run_id = verified_run(own)
    with Workspace.open(own) as workspace:
        artifact = (ArtifactFile("plan0.cubin", CUBIN.read_bytes()),)
        executor = LocalExecutor(own / "lock")
        outcome = profile(gathered(workspace, run_id), executor, artifact, tool="cuobjdump", progress=quiet)
    (event,) = outcome.events
    assert isinstance(event, ProfileCaptured)
    assert event.metrics["0.widest_load_bits"] == 128
    assert event.kind == "code"
    (kernel,) = orjson.loads(outcome.files["profile_cuobjdump.json"])["code"]
    assert kernel["name"] == "add_one"
    assert outcome.blobs == (outcome.files["profile_cuobjdump.json"],)


@pytest.mark.parametrize("tool", ["ncu", "cuobjdump"])
def test_what_no_tool_can_look_at_is_a_matter_of_the_machine_and_records_nothing(own: Path, tool: str) -> None:
    run_id = verified_run(own)
    with Workspace.open(own) as workspace:
        run = workspace.find_run(run_id)
        assert run.verified is not None
        assert isinstance(run.verified.event, CandidateVerified)
        with pytest.raises(EnvironmentUnfit, match=r"target GPU|no device code"):
            profile_candidate(workspace, run, untrusted_tool=tool, progress=quiet)
        assert list(workspace.ledger.read(types=("ProfileCaptured",))) == []


def test_a_profile_needs_a_known_tool_and_a_verified_candidate(own: Path) -> None:
    with Workspace.open(own) as workspace:
        run = workspace.find_run("last")
        with pytest.raises(UnknownName, match="unknown profiler 'gdb'"):
            profile_candidate(workspace, run, untrusted_tool="gdb", progress=quiet)
        with pytest.raises(PhaseOutOfOrder, match="expected a run whose candidate is verified") as early:
            profile_candidate(workspace, run, untrusted_tool="ncu", progress=quiet)
        assert early.value.hint == f"forge submit {run.run_id} DIR"


def test_a_run_that_was_refused_is_not_sent_back_to_its_verification(own: Path) -> None:
    run_id = rejected_run(own)
    with Workspace.open(own) as workspace:
        run = workspace.find_run(run_id)
        with pytest.raises(PhaseOutOfOrder) as late:
            profile_candidate(workspace, run, untrusted_tool="ncu", progress=quiet)
        assert late.value.hint == f"forge run open {run.task_id}"
