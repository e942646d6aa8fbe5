"""torch.compile tunes several times on a device, and the fastest tuning's choices are those that guests find."""

from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from forge.lab.baselines import baseline_function, baseline_program, cache_folder
from forge.lab.job import Job
from forge.lab.timing.timed_guest import open_timed, require_opened
from forge.lab.timing.tunings import TUNINGS, CompiledSide, choices, fastest_tuning
from forge.operations import find_operation
from forge.sandbox.stage import Stage
from tests.gpu.place import gpu
from tests.gpu.test_plans import on_the_gpu


def job() -> Job:
    return replace(
        on_the_gpu("", language="torch"),
        operation=find_operation("quantize_fp8_per_tensor"),
        shape={"batch": 16, "hidden_size": 4096},
        dtype="bf16",
        gpu=gpu(),
    )


def test_every_tuning_is_timed_and_the_fastest_ones_choices_stay() -> None:
    asked = job()
    side = CompiledSide(
        program=partial(baseline_program, asked),
        functions=(baseline_function(asked, "eager"), baseline_function(asked, "compile")),
        place=1,
        kept=cache_folder("tunings"),
    )
    steps: list[str] = []
    with ExitStack() as held:
        with ExitStack() as stack:
            stage = Stage(side.program(side.kept), asked.isolation)
            held.callback(stage.remove)
            first = require_opened(open_timed(stack, asked, stage, side.functions), "the baselines")
            made = choices(side.kept)
            tuned = fastest_tuning(held, asked, side, first, frozenset(), progress=steps.append)
        assert tuned is not None
        wanted = {choice: (tuned.chosen / choice).read_bytes() for choice in made}
        tuned.install()
        assert {choice: (side.kept / choice).read_bytes() for choice in choices(side.kept)} == wanted
    assert len(made) >= 2
    assert steps == [f"torch.compile: tuning {number} of {TUNINGS}" for number in range(2, TUNINGS + 1)]
    assert 1_000 < tuned.call_ns < 1_000_000


def test_a_function_whose_choices_were_made_before_is_not_tuned_again() -> None:
    asked = job()
    side = CompiledSide(
        program=partial(baseline_program, asked),
        functions=(baseline_function(asked, "compile"),),
        place=0,
        kept=cache_folder("tunings made before"),
    )
    with ExitStack() as held, ExitStack() as stack:
        stage = Stage(side.program(side.kept), asked.isolation)
        held.callback(stage.remove)
        first = require_opened(open_timed(stack, asked, stage, side.functions), "the baselines")
        assert fastest_tuning(held, asked, side, first, choices(side.kept), progress=print) is None
