"""Runs beside hostile code. Reads switches of torch's that change what later calls of a process give or cost.

Names that a version of torch doesn't have are left out, so each reading only compares with one of the same process.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import forward_ad

_GLOBAL_HOOKS = (
    "_global_forward_pre_hooks",
    "_global_forward_hooks",
    "_global_backward_pre_hooks",
    "_global_backward_hooks",
    "_global_parameter_registration_hooks",
    "_global_buffer_registration_hooks",
    "_global_module_registration_hooks",
)
"""Torch's own names for its tables of hooks of all modules."""
_OTHERS = (
    "_get_nnpack_enabled",
    "_get_mkldnn_deterministic",
    "_get_linalg_preferred_backend",
    "_get_cpu_allow_fp16_reduced_precision_reduction",
    "_get_cublas_allow_fp16_accumulation",
    "_get_math_sdp_allow_fp16_bf16_reduction",
    "_get_sm_carveout_experimental",
    "_get_overrideable_sdp_enabled",
    "_get_torch_function_state",
    "_is_fwd_grad_enabled",
    "_is_view_replay_enabled",
)
"""Torch's own names for functions that say by which libraries it computes, how precisely in half types, and what it
keeps for gradients. One says how many of a GPU's processors products leave free, and one whether subclasses of
tensors are asked."""


def hooks_of_modules() -> tuple[int, ...]:
    """Return the numbers of hooks that torch calls for every module of the process."""
    every = torch.nn.modules.module
    return tuple(len(getattr(every, name, ())) for name in _GLOBAL_HOOKS)


def other_switches() -> tuple[object, ...]:
    """Return what torch warns of and checks, which libraries it calls besides oneDNN, and how precisely."""
    checked = torch.sparse.check_sparse_tensor_invariants.is_enabled()
    engine, order = torch.backends.quantized.engine, torch.backends.opt_einsum.strategy
    of_cudnn = (getattr(torch.backends.cudnn, name, None) for name in ("conv", "rnn"))
    precisions = (getattr(backend, "fp32_precision", None) for backend in of_cudnn)
    others = (_asked(torch._C, name) for name in _OTHERS)
    return torch.is_warn_always_enabled(), checked, engine, order, *precisions, *others


def products() -> tuple[object, ...]:
    """Return how precise torch's own products in fp32 are, by every name that this version has for it.

    Torch refuses to answer by its older names once the newer ones have been set to something else. Products of
    oneDNN's for which nothing was said are as precise as after "ieee". Torch's older function says that, also when a
    program puts back what it read.
    """
    backends = (torch.backends, *(getattr(torch.backends.mkldnn, name, None) for name in ("matmul", "conv", "rnn")))
    general, *of_onednn = (getattr(backend, "fp32_precision", None) for backend in backends)
    named = general, *("ieee" if one == "none" else one for one in of_onednn)
    try:
        return torch.get_float32_matmul_precision(), torch.backends.cuda.matmul.allow_tf32, *named
    except RuntimeError:
        return named


def autocast() -> tuple[object, ...]:
    """Return whether and to which types torch casts by itself, and whether it keeps what it cast."""
    enabled = tuple(map(torch.is_autocast_enabled, ("cpu", "cuda")))
    types = (_asked(torch, "get_autocast_dtype", device) for device in ("cpu", "cuda"))
    return *enabled, *types, torch.is_autocast_cache_enabled()


def dispatch() -> tuple[object, ...]:
    """Return which implementations this thread's calls take, and the transforms and profilers that are entered."""
    keys = (_asked(torch._C, f"_dispatch_tls_local_{which}_set") for which in ("include", "exclude"))
    functorch: Any = getattr(torch._C, "_functorch", None)
    transforms = _asked(functorch, "peek_interpreter_stack") is None
    return *map(str, keys), transforms, forward_ad._current_level, _asked(torch.autograd, "_profiler_enabled")


def kept_for_gradients() -> tuple[object, ...]:
    """Return the functions that torch calls for each tensor that a gradient needs, and why they are refused."""
    hooks: Any = _asked(torch._C._autograd, "_top_saved_tensors_default_hooks", False)
    message = _asked(torch._C._autograd, "_saved_tensors_hooks_get_disabled_error_message")
    return None if hooks is None else tuple(map(id, hooks)), message


def conversions() -> tuple[object, ...]:
    """Return how torch changes a module's parameters where it is moved or cast."""
    names = ("get_overwrite_module_params_on_conversion", "get_swap_module_params_on_conversion")
    return tuple(_asked(torch.__future__, name) for name in names)


def _asked(holder: object, name: str, *arguments: object) -> object:
    function: Callable[..., object] | None = getattr(holder, name, None)
    return None if function is None else function(*arguments)
