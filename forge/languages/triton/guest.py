"""Runs beside hostile code. Triton compiles when it is called; on a CPU its interpreter replaces the compiler.

The host sets `TRITON_INTERPRET` in the environment if there is no GPU.

An autotuned kernel isn't tuned by a clock: the host says which configuration it is launched with. So every one of
them is asked, and no time is lost with timing at each new shape.
"""

import functools
import importlib
import itertools
import json
import os
import random
from collections.abc import Callable
from typing import Any

CONFIGURATION_FILE = "configuration.json"
"""Name of the file beside kernel.py that holds the configurations that were measured."""


def prepare(body: dict[str, object]) -> None:
    """Take the clock away from tuners, and make the interpreter round and compute as a GPU does."""
    _replace_the_clock()
    _keep(str(body["candidate_directory"]))
    if os.environ.get("TRITON_INTERPRET") == "1":
        importlib.import_module(".small_floats", __package__).round_as_a_gpu()
        _compute_with_bf16()
        _leave_out_nan()
        importlib.import_module(".tf32", __package__).multiply_as_a_gpu()
        importlib.import_module(".repeated_work", __package__).spare_the_interpreter()
        importlib.import_module(".block_truth", __package__).treat_blocks_as_the_compiler()
        importlib.import_module(".loop_counters", __package__).count_as_the_compiler()
        importlib.import_module(".own_reductions", __package__).combine_in_blocks()
        importlib.import_module(".device_functions", __package__).know_device_functions()
        importlib.import_module(".launch_options", __package__).refuse_as_the_compiler()
        _shuffle_programs()


def _compute_with_bf16() -> None:
    """Make the interpreter compute bf16 in fp32 and round once; by itself it takes the bits for integers."""
    import numpy as np
    import triton.language as tl
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    narrow_binary, narrow_fma = InterpreterBuilder.binary_op, InterpreterBuilder.create_fma
    narrow_dot = InterpreterBuilder.create_dot

    def widened(builder: InterpreterBuilder, value: TensorHandle) -> TensorHandle:
        return builder.cast_impl(value, tl.float32) if value.dtype.scalar == tl.bfloat16 else value

    def rounded(builder: InterpreterBuilder, value: TensorHandle) -> TensorHandle:
        return value if value.data.dtype == np.bool_ else builder.cast_impl(value, tl.bfloat16)

    def binary(
        builder: InterpreterBuilder, lhs: TensorHandle, rhs: TensorHandle, op: Callable[..., object]
    ) -> TensorHandle:
        if lhs.dtype.scalar != tl.bfloat16:
            return narrow_binary(builder, lhs, rhs, op)
        return rounded(builder, narrow_binary(builder, widened(builder, lhs), widened(builder, rhs), op))

    def fma(builder: InterpreterBuilder, x: TensorHandle, y: TensorHandle, z: TensorHandle) -> TensorHandle:
        if z.dtype.scalar != tl.bfloat16:
            return narrow_fma(builder, x, y, z)
        return rounded(builder, narrow_fma(builder, *(widened(builder, one) for one in (x, y, z))))

    def dot(
        builder: InterpreterBuilder, lhs: TensorHandle, rhs: TensorHandle, total: TensorHandle, *how: object
    ) -> TensorHandle:
        return narrow_dot(builder, widened(builder, lhs), widened(builder, rhs), total, *how)

    InterpreterBuilder.binary_op = binary
    InterpreterBuilder.create_fma = fma
    InterpreterBuilder.create_dot = dot


def _leave_out_nan() -> None:
    """Make tl.maximum, tl.minimum and tl.clamp leave a NaN out unless they are told to pass it on, as a GPU does.

    The interpreter of Triton up to 3.7 passes it on always, and a kernel that loses NaN was accepted.
    """
    import numpy as np
    from triton._C.libtriton import ir
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    passing_on = InterpreterBuilder.create_clampf

    def largest(builder: InterpreterBuilder, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
        return builder.binary_op(lhs, rhs, np.fmax)

    def least(builder: InterpreterBuilder, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
        return builder.binary_op(lhs, rhs, np.fmin)

    def clamped(
        builder: InterpreterBuilder, value: TensorHandle, low: TensorHandle, high: TensorHandle, nan: object
    ) -> TensorHandle:
        if nan != ir.PROPAGATE_NAN.NONE:
            return passing_on(builder, value, low, high, nan)
        return least(builder, largest(builder, value, low), high)

    InterpreterBuilder.create_maxnumf, InterpreterBuilder.create_minnumf = largest, least
    InterpreterBuilder.create_clampf = clamped


def _shuffle_programs() -> None:
    """Make the interpreter run a grid's programs in a random order, since a GPU promises none."""
    from triton.runtime.interpreter import InterpreterBuilder

    set_dimensions, set_index = InterpreterBuilder.set_grid_dim, InterpreterBuilder.set_grid_idx
    rng = random.Random(0)  # noqa: S311 (apart from the generator that all share)
    order: list[tuple[int, ...]] = []

    def start(builder: InterpreterBuilder, *sizes: int) -> None:
        order[:] = itertools.product(*map(range, sizes))
        rng.shuffle(order)
        set_dimensions(builder, *sizes)

    InterpreterBuilder.set_grid_dim = start
    InterpreterBuilder.set_grid_idx = lambda builder, *_: set_index(builder, *order.pop())


REHEARSALS = 2
"""Number of times that a rehearsed tuning runs each configuration. Triton's own runs each hundreds of times."""


class NoConfigurationError(Exception):
    """An autotuned kernel has no configuration, or its pruning left none, or none of them can be launched here."""


class PrunedByDataError(Exception):
    """A pruning function reads the content of tensors, so that no tuning at one call says what holds at another."""


Key = tuple[int, tuple[object, ...]]
"""Identity of a tuner, and its key."""


class _Tuning:
    """Says which configuration an autotuned kernel is launched with, in the place of the tuner's clock."""

    def __init__(self) -> None:
        self.choice = 0
        """Number of the configuration, counted around as often as needed."""
        self.way = "choose"
        """Way to a configuration. `choose`: by its number. `rehearse`: by its number, after a tuning without a clock.
        `measure`: the fastest by the tuner's own clock, which is then kept."""
        self.kept: list[dict[str, object]] = []
        """Configurations by kernel: where one of them is a choice, it alone is."""
        self.choices: dict[Key, list[Any]] = {}
        """Configurations of each tuner for each of its keys, after its own pruning. Calls with one key may prune in
        different ways. Any of them may have been tuned, so the configurations that any of them left are choices."""
        self.pruned_for: dict[Key, set[str]] = {}
        """Forms of the arguments for which the choices were pruned, by key."""
        self.tuners: list[Any] = []
        """Tuners in the order of their first calls."""
        self.unfit: dict[Key, list[Any]] = {}
        """Configurations that a tuner would skip, since they can't be built or launched on this machine."""
        self.done: set[Key] = set()
        """Keys that were tuned since the host's last command."""


_tuning = _Tuning()


def choose(choice: int, way: str) -> int:
    """Use this choice from now on; return how many configurations the calls so far could choose from, at most."""
    _tuning.choice, _tuning.way = choice, way
    _tuning.done.clear()
    return max((len(configurations) for configurations in _tuning.choices.values()), default=0)


def described() -> list[dict[str, object]]:
    """Return the configurations that were measured and kept, or the one each tuner was last launched with."""
    return _tuning.kept or [_described(tuner, tuner.best_config) for tuner in _tuning.tuners]


def _keep(directory: str) -> None:
    """Keep to the configurations that were recorded beside kernel.py, if there are any."""
    try:
        with open(os.path.join(directory, CONFIGURATION_FILE), encoding="utf-8") as file:
            _tuning.kept = json.load(file)
    except OSError:
        return


def _replace_the_clock() -> None:
    """Let every autotuned kernel be launched with the host's choice, from before the candidate is imported."""
    from triton.runtime.autotuner import Autotuner

    made = Autotuner.__init__

    @functools.wraps(made)
    def make(
        tuner: Any, fn: object, arg_names: object, configs: list[object], *rest: object, **named: object
    ) -> None:
        made(tuner, fn, arg_names, configs, *rest, **named)
        tuner.without_configurations = not configs

    @functools.wraps(Autotuner.run)
    def run(tuner: Any, *arguments: object, **named: object) -> object:
        tuner.nargs = dict(zip(tuner.arg_names, arguments, strict=False))
        try:
            return _run(tuner, arguments, named)
        finally:
            tuner.nargs = None

    Autotuner.__init__ = make
    Autotuner.run = run


def _run(tuner: Any, arguments: tuple[object, ...], named: dict[str, object]) -> object:
    """Launch a kernel with the configuration that is due, or with the next one that this machine can launch."""
    key = (id(tuner), _key(tuner, named))
    choices, unfit = _choices_so_far(tuner, key, named), _tuning.unfit.setdefault(key, [])
    kept = [one for one in choices if _tuning.kept and _described(tuner, one) in _tuning.kept]
    first = _first(tuner)
    order = kept[:1] or [choices[(first + place) % len(choices)] for place in range(len(choices))]
    if _tuning.way != "choose" and key not in _tuning.done and len(choices) > 1:
        _tuning.done.add(key)
        fastest = _tuned(tuner, choices, arguments, named, measure=_tuning.way == "measure")
        if _tuning.way == "measure":
            _tuning.kept = [*_tuning.kept, _described(tuner, fastest)]
            order = [fastest]
    reason: Exception | None = None
    for one in order:
        if any(one is other for other in unfit):
            continue
        try:
            if len(tuner.configs) > 1:
                tuner.cache[key[1]] = one  # as Triton's own tuner keeps it
            return _launched(tuner, one, arguments, named)
        except _skipped() as error:
            unfit.append(one)
            reason = error
    raise NoConfigurationError(f"{_name(tuner)}: none of {len(choices)} can be launched here") from reason


def _choices_so_far(tuner: Any, key: Key, named: dict[str, object]) -> list[Any]:
    """Return the configurations that a tuner may have chosen for a key, by the calls so far and this one."""
    choices = _tuning.choices.setdefault(key, [])
    forms, seen = "", _tuning.pruned_for.setdefault(key, set())
    if tuner.early_config_prune or tuner.perf_model:
        forms = repr([_form(one) for one in (*tuner.nargs.values(), *named.values())])
    if forms not in seen:
        choices += [one for one in _choices(tuner, named) if all(one is not other for other in choices)]
        seen.add(forms)
        if all(one is not tuner for one in _tuning.tuners):
            _tuning.tuners.append(tuner)
    return choices


def _form(argument: Any) -> object:
    return (argument.shape, argument.stride()) if hasattr(argument, "stride") else argument


def _first(tuner: Any) -> int:
    """Return the number of the configuration that is tried first.

    Numbers below the most configurations are the same for all tuners, so that each is asked. In larger ones each
    tuner has a digit of its own: a user's tuners choose one by one.
    """
    most = max(map(len, _tuning.choices.values()))
    place = next(place for place, one in enumerate(_tuning.tuners) if one is tuner)
    return int(_tuning.choice + (_tuning.choice // most**place if place else 0))


def _launched(tuner: Any, configuration: Any, arguments: tuple[object, ...], named: dict[str, object]) -> object:
    """Launch as the tuner does once it has chosen."""
    tuner.best_config = configuration
    values = configuration.all_kwargs()
    if configuration.pre_hook is not None:
        configuration.pre_hook({**tuner.nargs, **named, **values})
    return tuner.fn.run(*arguments, **named, **values)


def _tuned(
    tuner: Any, choices: list[Any], arguments: tuple[object, ...], named: dict[str, object], *, measure: bool
) -> Any:
    """Do what the tuner does at the first call of a key, with its hooks; return the configuration that it chooses.

    It runs every configuration on the caller's tensors. Without a clock each of them runs only a few times.
    """
    own = {name: value for name, value in vars(tuner).items() if name == "do_bench"}
    vars(tuner)["do_bench"] = tuner.do_bench if measure else _without_a_clock
    try:
        took = [tuner._bench(*arguments, config=one, **named) for one in choices]
    finally:
        del vars(tuner)["do_bench"]
        vars(tuner).update(own)
    fastest = choices[min(range(len(choices)), key=lambda place: took[place])]
    tuner.pre_hook({**tuner.nargs, **named, **fastest.all_kwargs()}, reset_only=True)
    return fastest


def _without_a_clock(call: Callable[[], object], quantiles: tuple[float, ...]) -> list[float]:
    for _ in range(REHEARSALS):
        call()
    return [1.0] * len(quantiles)


def _key(tuner: Any, named: dict[str, object]) -> tuple[object, ...]:
    """Return what decides whether Triton tunes anew: the values of its key, and the types of all tensors."""
    given = {name: value for name, value in {**tuner.nargs, **named}.items() if name in tuner.arg_names}
    types = [str(one.dtype) for one in given.values() if hasattr(one, "dtype")]
    return (*(given[name] for name in tuner.keys if name in given), *types)


def _choices(tuner: Any, named: dict[str, object]) -> list[Any]:
    """Return the configurations that the tuner could choose at these arguments, each once.

    Its pruning sees the forms of tensors, and not their content.
    """
    if getattr(tuner, "without_configurations", False):
        raise NoConfigurationError(f"{_name(tuner)}: triton.autotune was given no configuration")
    choices = list(tuner.configs)
    if len(choices) > 1 and (tuner.early_config_prune or tuner.perf_model):
        choices = _pruned(tuner, named)
        # a pruning function may tell tensors without content from others, and a user's tuner hands it the call's
        called = _pruned_with(tuner, named, lambda tensor: tensor)
        choices += [one for one in called if all(one is not other for other in choices)]
    if not choices:
        raise NoConfigurationError(f"{_name(tuner)}: its pruning left no configuration")
    if os.environ.get("TRITON_INTERPRET") == "1":  # which knows no warps and no stages
        values = [(one.kwargs, one.pre_hook) for one in choices]
        choices = [one for place, one in enumerate(choices) if values.index(values[place]) == place]
    return choices


def _pruned(tuner: Any, named: dict[str, object]) -> list[Any]:
    """Let the tuner prune with tensors without content; if it can't, with two contents that aren't the call's."""
    import torch
    from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    try:
        return _pruned_with(tuner, named, mode.from_tensor)
    except DataDependentOutputException as error:
        raise PrunedByDataError(f"{_name(tuner)}: its pruning reads the content of a tensor") from error
    except (RuntimeError, TypeError, ValueError, AttributeError):  # it may want what only memory has, as an address
        found = [_pruned_with(tuner, named, made) for made in (torch.zeros_like, torch.ones_like)]
    if found[0] != found[1]:
        raise PrunedByDataError(f"{_name(tuner)}: its pruning depends on the content of a tensor")
    return found[0]


def _pruned_with(tuner: Any, named: dict[str, object], replaced: Callable[[Any], object]) -> list[Any]:
    """Return what the tuner's pruning leaves, with every tensor replaced."""
    import torch

    given = tuner.nargs
    tuner.nargs, others = (
        {name: replaced(value) if isinstance(value, torch.Tensor) else value for name, value in values.items()}
        for values in (given, named)
    )
    try:
        return list(tuner.prune_configs(others))
    finally:
        tuner.nargs = given


def _skipped() -> tuple[type[Exception], ...]:
    """Return the errors at which Triton's own tuner leaves a configuration out."""
    from triton.compiler.errors import CompileTimeAssertionFailure
    from triton.runtime import errors

    return (errors.OutOfResources, CompileTimeAssertionFailure, getattr(errors, "PTXASError", errors.OutOfResources))


def _name(tuner: Any) -> str:
    return str(getattr(tuner.base_fn, "__name__", "a kernel"))


def _described(tuner: Any, configuration: Any) -> dict[str, object]:
    """Return a configuration as data: the kernel's name, its own values, and what Triton calls its options."""
    options = ("num_warps", "num_stages", "num_ctas", "maxnreg")
    plain = (int, float, str, type(None))
    values = {str(name): one if isinstance(one, plain) else str(one) for name, one in configuration.kwargs.items()}
    return {
        "kernel": _name(tuner),
        "values": values,
        **{name: getattr(configuration, name, None) for name in options},
    }
