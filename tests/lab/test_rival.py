"""The promoted kernel as one more baseline: what can't be loaded here is built here."""

from dataclasses import replace

import pytest

from forge.domain.policy import Policy
from forge.errors import EnvironmentUnfit
from forge.lab.calls.artifact import build_artifact
from forge.lab.job import Incumbent, Job
from forge.lab.reference.binding import answered
from forge.lab.timing.cpu_processes import GuestSet, open_guests
from forge.lab.timing.incumbent import PROMOTED
from forge.sandbox.build import Built
from tests.candidates import EXAMPLES, job_for
from tests.lab.reference.references import AS_SOLVED, POLICY
from tests.lab.reference.references import job_for as reference_job

pytestmark = pytest.mark.usefixtures("walls")
HONEST = (EXAMPLES / "honest_cpp" / "kernel.py").read_text()


def job() -> Job:
    return replace(job_for(HONEST, language="cpp"), policy=Policy(baselines=("eager",), memory_limit_bytes=2**30))


def test_a_promoted_kernel_that_was_built_elsewhere_is_built_anew() -> None:
    asked = job()
    built = build_artifact(asked)
    assert isinstance(built, Built), built
    incumbent = Incumbent(files=asked.files, artifact=(), entry_point=asked.entry_point)
    with open_guests(asked, built.files, incumbent) as factory:
        guests = factory.fresh()
        assert isinstance(guests, GuestSet), guests
        with guests:
            assert PROMOTED in guests.sides


def test_one_that_cannot_be_built_here_is_the_machines_fault() -> None:
    asked = job()
    files = {**asked.files, "kernel.py": HONEST.replace("#include", "#include_nothing", 1).encode()}
    incumbent = Incumbent(files=files, artifact=(), entry_point=asked.entry_point)
    with (
        pytest.raises(EnvironmentUnfit, match="the promoted kernel can't be built on this machine"),
        open_guests(asked, (), incumbent),
    ):
        pass


def test_a_promoted_answer_to_a_reference_of_ones_own_is_measured_beside() -> None:
    solved = replace(reference_job(AS_SOLVED, "ModelNew"), policy=POLICY.model_copy(update={"baselines": ("eager",)}))
    with answered(solved) as asked:
        incumbent = Incumbent(files=asked.files, artifact=(), entry_point=asked.entry_point)
        with open_guests(asked, (), incumbent) as factory:
            guests = factory.fresh()
            assert isinstance(guests, GuestSet), guests
            with guests:
                assert PROMOTED in guests.sides
