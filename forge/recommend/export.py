"""A plan as settings to start a server with."""

from typing import Literal

from forge.domain.digest import Value
from forge.domain.tensors import TORCH_NAMES
from forge.recommend.memory import USABLE_SHARE
from forge.recommend.models import find_model
from forge.recommend.plan import Plan
from forge.recommend.quantization import Backend, Quantization
from forge.recommend.request import Workload

ScalingMode = Literal["always-on", "scale-to-zero"]
_AT_LOAD: dict[Quantization, str | None] = {"bf16": None, "fp16": None, "fp8": "fp8", "int8": None, "int4": None}
"""Quantizations that vLLM applies to published 16-bit weights while it loads them (its documentation, "FP8 W8A8")."""


class DeploymentConfig(Value):
    """Settings by vLLM's names; the figures behind them are the plan's."""

    model_id: str
    repository: str
    gpu: str
    gpu_count: int
    backend: Backend
    quantization: Quantization
    quantization_argument: str | None
    """Argument for the server. None: the weights say it themselves."""
    max_model_len: int
    tensor_parallel_size: int
    gpu_memory_utilization: float
    max_num_seqs: int
    dtype: str
    enforce_eager: bool = False
    scaling_mode: ScalingMode
    task: Literal["generate", "embed"]
    command: tuple[str, ...] | None
    """Command that starts vLLM. None: another backend, or a checkpoint must be found first."""
    notes: tuple[str, ...]


def export_config(plan: Plan, *, workload: Workload) -> DeploymentConfig:
    """Return the settings of one plan.

    The repository holds weights as published. A quantization that isn't made at load needs a checkpoint of its own:
    then there is no command, and a note says so.
    """
    model = find_model(plan.model)
    argument = _AT_LOAD[plan.quantization] if model.native_bits == 16 else None
    as_published = plan.quantization in {"bf16", "fp16"} if model.native_bits == 16 else plan.quantization == "fp8"
    ready = as_published or argument is not None
    notes = () if ready else (f"needs a checkpoint in {plan.quantization}: {model.repository} holds other weights",)
    settings = {
        "--tensor-parallel-size": plan.tensor_parallel,
        "--max-model-len": plan.context_tokens,
        "--max-num-seqs": plan.running_requests,
        "--gpu-memory-utilization": USABLE_SHARE,
        "--dtype": TORCH_NAMES[plan.activation_dtypes[0]],
    } | ({} if argument is None else {"--quantization": argument})
    command = ("vllm", "serve", model.repository, *(str(word) for pair in settings.items() for word in pair))
    return DeploymentConfig(
        model_id=plan.model,
        repository=model.repository,
        gpu=plan.gpu,
        gpu_count=plan.gpus,
        backend=plan.backend,
        quantization=plan.quantization,
        quantization_argument=argument,
        max_model_len=plan.context_tokens,
        tensor_parallel_size=plan.tensor_parallel,
        gpu_memory_utilization=USABLE_SHARE,
        max_num_seqs=plan.running_requests,
        dtype=TORCH_NAMES[plan.activation_dtypes[0]],
        scaling_mode="scale-to-zero" if workload == "batch" else "always-on",
        task=model.purpose,
        command=command if ready and plan.backend == "vllm" else None,
        notes=notes,
    )
