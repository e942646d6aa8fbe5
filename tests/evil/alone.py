"""Asks one gate alone about a candidate, as `pytest --gates` does: the gates before it aren't what is tried there."""

from forge.domain.verdict import Reason, Rejected
from forge.lab import sanitizer
from forge.lab.asked_gates import ask
from forge.lab.calls import artifact
from forge.lab.calls.load import loaded, staged
from forge.lab.finding import Failed, Finding
from forge.lab.gates import GATES, threads
from forge.lab.gates.configurations import CONFIGURATIONS
from forge.lab.gates.own_tests import examine_own_tests
from forge.lab.job import Job
from forge.lab.verification import examine
from forge.sandbox.build import Built

BEFORE_GATES = ("sources", "build", "load")
"""Names of the refusals that come before any gate, so that a whole examination ends with them."""


def refusal_by(name: str, job: Job) -> Reason:
    """Return why the named gate refuses the candidate; fail the test if it doesn't."""
    if name in BEFORE_GATES:
        examined = examine(job, progress=lambda _: None)
        assert isinstance(examined.verdict, Rejected), examined.gates
        assert examined.gates[-1].name == name
        return examined.verdict.reason
    finding = _finding(name, job)
    assert isinstance(finding, Failed), finding.observed
    return finding.reason


def _finding(name: str, job: Job) -> Finding:
    built = artifact.build_artifact(job) if job.language.builds else Built(())
    assert isinstance(built, Built), built
    files = artifact.staged_files(job, built.files)
    if name == "threads":
        return threads.examine(job, files)
    if name == "sanitizer":
        return sanitizer.examine(job, built.files)
    limits = job.limits(job.policy.verify_limit_s)
    with staged(job, files, {}) as stage:
        if name == "own_tests":
            return examine_own_tests(stage, limits=limits, threads=job.threads)
        gate = next(gate for gate in GATES if gate.name == name)
        with loaded(job, stage, limits, label="load", fills_memory=True) as kernel:
            assert not isinstance(kernel, Failed), kernel
            if gate is CONFIGURATIONS:
                kernel.call([kernel.case(kernel.shape)])  # it asks what the calls before it have launched
            return ask(kernel, gate).finding
