"""What an event says of a fault that was the machine's."""

import pytest

from forge.errors import EnvironmentUnfit
from forge.pipeline.outcome import detail_of


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (
            EnvironmentUnfit("the GPU is in use", hint="end what else runs there"),
            "the GPU is in use; end what else runs there",
        ),
        (EnvironmentUnfit("no compiler"), "no compiler"),
        (OSError(28, "No space left on device"), "[Errno 28] No space left on device"),
    ],
)
def test_the_next_step_is_recorded_with_the_fault(error: EnvironmentUnfit | OSError, detail: str) -> None:
    assert detail_of(error) == detail
