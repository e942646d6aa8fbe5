"""A trusted side that fails ends a measurement without a verdict, and the error says which side, and why."""

import pytest

from forge.domain.verdict import Reason
from forge.errors import EnvironmentUnfit
from forge.lab.finding import Failed
from forge.lab.timing.timed_guest import MOST_SAID, require_opened, side_of_baselines
from tests.candidates import EXAMPLES, job_for


def failed(log: str) -> Failed:
    reason = Reason(code="RUNTIME_ERROR", message="the call raised an exception")
    return Failed(reason=reason, observed=reason.message, threshold="every side loads", log=log)


def test_the_error_names_the_baselines_and_whole_lines_of_what_was_said() -> None:
    job = job_for((EXAMPLES / "honest_cpp" / "kernel.py").read_text(), language="cpp")
    log = "a frame far up\n" + "x" * MOST_SAID + "\nTypeError: no such index\n"
    with pytest.raises(EnvironmentUnfit) as error:
        require_opened(failed(log), side_of_baselines(job))
    assert str(error.value) == (
        "one of the baselines (eager, compile; policy.toml can leave out one that can't run here) failed on this "
        "machine: the call raised an exception; TypeError: no such index"
    )


def test_a_short_log_is_shown_whole() -> None:
    with pytest.raises(EnvironmentUnfit, match=r"^the control failed on this machine: .*; one line$"):
        require_opened(failed("one line\n"), "the control")
