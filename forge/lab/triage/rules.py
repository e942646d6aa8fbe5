"""Assigns kinds of findings to dotted names: the longest entry that equals or begins the name decides.

`_HARMLESS` exempts a name below one that isn't harmless. The names are those that imports resolve to.
"""

from functools import cache
from typing import Literal

from forge.domain.source_finding import FindingKind

_NAMES: dict[FindingKind, str] = {
    "dynamic_import": "importlib builtins.__import__ imp runpy pkgutil zipimport",
    "foreign_code": """
        ctypes.CDLL ctypes.PyDLL ctypes.cdll ctypes.pydll cffi torch.ops.load_library torch.utils.cpp_extension
    """,
    "patching": "builtins.setattr builtins.delattr unittest.mock torch.library torch.overrides",
    "threads": """
        threading _thread concurrent.futures asyncio atexit weakref.finalize signal torch.cuda.Stream
        torch.cuda.stream torch.cuda.ExternalStream torch.cuda.CUDAGraph torch.cuda.graph torch.cuda.graphs
    """,
    "environment": """
        os.environ os.getenv sys.argv platform torch.set_num_threads torch.set_num_interop_threads
        torch.set_float32_matmul_precision torch.set_default_dtype torch.set_default_device
        torch.use_deterministic_algorithms torch.set_printoptions torch.set_flush_denormal resource
        os.sched_setaffinity
    """,
    "frames": """
        sys._getframe sys._current_frames inspect.stack inspect.trace inspect.currentframe inspect.getouterframes
        gc.get_objects gc.get_referrers gc.get_referents traceback.walk_stack guest sys.modules.values
        sys.modules.items sys.modules.keys sys.modules.copy
    """,
    "introspection": """
        inspect gc sys.modules sys.settrace sys.setprofile sys.meta_path sys.addaudithook traceback builtins.globals
        builtins.locals builtins.vars builtins.__builtins__ ctypes.pythonapi ctypes.string_at ctypes.wstring_at
        ctypes.memmove ctypes.memset ctypes.py_object dis faulthandler sys.monitoring sys.path_hooks tracemalloc
        torch._C types.CodeType types.FunctionType weakref.getweakrefs
    """,
    "files": """
        builtins.open io.open os.open os.read os.write os.listdir os.stat os.unlink os.remove os.rename os.replace
        os.mkdir os.makedirs os.symlink os.truncate os.ftruncate os.memfd_create os.pipe os.path.exists shutil
        tempfile mmap sqlite3 torch.save numpy.save numpy.memmap numpy.load multiprocessing.shared_memory
    """,
    "network": """
        socket _socket ssl http.client http.server urllib.request ftplib smtplib poplib imaplib xmlrpc socketserver
        asyncio.open_connection asyncio.start_server aiohttp httpx requests urllib3 paramiko huggingface_hub torch.hub
        websockets zmq
    """,
    "processes": """
        subprocess _posixsubprocess os.system os.popen os.fork os.forkpty os.execl os.execle os.execlp os.execlpe
        os.execv os.execve os.execvp os.execvpe os.spawnl os.spawnle os.spawnlp os.spawnlpe os.spawnv os.spawnve
        os.spawnvp os.spawnvpe os.posix_spawn os.posix_spawnp os.kill os.killpg os.setsid os.pidfd_open os.ptrace pty
        multiprocessing.Process multiprocessing.Pool multiprocessing.get_context multiprocessing.process
        multiprocessing.Manager torch.multiprocessing.spawn torch.multiprocessing.Process torch.multiprocessing.Pool
        signal.pidfd_send_signal
    """,
    "clock": """
        time timeit triton.testing datetime.datetime.now torch.cuda.Event torch.profiler torch.autograd.profiler
    """,
    "randomness": """
        random secrets numpy.random os.urandom uuid torch.rand torch.randn torch.randint torch.randperm
        torch.rand_like torch.randn_like torch.randint_like torch.manual_seed torch.seed torch.Generator
        torch.cuda.manual_seed triton.language.rand triton.language.randn triton.language.randint
        triton.language.philox torch.initial_seed torch.get_rng_state torch.set_rng_state
    """,
    "foreign_kernel": """
        flash_attn flash_attn_interface xformers liger_kernel flashinfer cutlass apex vllm sglang bitsandbytes
        transformer_engine fla cupy jax tvm torchao kernels numba tilelang deep_gemm cuda deepspeed
        mamba_ssm causal_conv1d tensorrt aiter
    """,
    "vendor_fallback": """
        torch.nn torch.ops torch.compile torch._dynamo torch._inductor torch.jit torch.linalg torch.backends.cudnn
        torch.special torch.fft
    """,
    "eval_exec": "builtins.eval builtins.exec builtins.compile code.InteractiveInterpreter codeop",
    "serialized_payload": """
        pickle marshal cloudpickle base64 zlib gzip binascii.unhexlify builtins.bytes.fromhex torch.load safetensors
        zipfile
    """,
}
_HARMLESS = """
    importlib.metadata importlib.resources concurrent.futures.TimeoutError subprocess.PIPE subprocess.DEVNULL
    subprocess.STDOUT subprocess.SubprocessError subprocess.CalledProcessError subprocess.TimeoutExpired
    socket.timeout socket.error socket.gaierror socket.herror requests.exceptions torch.hub.get_dir
    torch.jit.is_scripting torch.jit.is_tracing torch.nn.Parameter torch.nn.Module
"""

_METHODS: dict[FindingKind, str] = {
    "files": "read_text read_bytes write_text write_bytes iterdir mkdir unlink rglob",
    "introspection": "from_address from_buffer",
    "randomness": "random_ normal_ uniform_ bernoulli_",
    "patching": "register_forward_hook register_hook",
}
_ATTRIBUTES: dict[FindingKind, str] = {
    "introspection": """
        __code__ __globals__ __closure__ __subclasses__ __bases__ __mro__ __builtins__ __loader__ __getattribute__
        _version
    """,
    "frames": "f_back f_globals f_locals f_code gi_frame cr_frame tb_frame",
}

_COMPUTE = """
    matmul mm bmm addmm addbmm baddbmm einsum dot inner outer tensordot conv1d conv2d conv3d softmax log_softmax
    layer_norm rms_norm group_norm batch_norm instance_norm scaled_dot_product_attention gelu silu relu sigmoid
    tanh mean sum var std prod logsumexp cumsum cumprod norm vector_norm rsqrt sqrt square pow exp log erf topk
    sort argsort argmax argmin amax amin max min mul add sub div true_divide addcmul addcdiv linear embedding
    cross_entropy lerp _softmax native_layer_norm index_add scatter_add mul_ add_ sub_ div_ rsqrt_ sqrt_ square_
    pow_ exp_
"""
_NOT_ALONE = "add log max min pow sort sub dot norm linear sum mul exp"
"""Names of operations that, as methods, may be those of another object."""
METHODS_OF_TENSORS = frozenset(_COMPUTE.split()) - frozenset(_NOT_ALONE.split())
"""Names of operations that, as methods, can only be a tensor's."""


def by_name(listed: dict[FindingKind, str]) -> dict[str, FindingKind]:
    """Return the kind of each name of a table that lists names by kind."""
    return {name: kind for kind, names in listed.items() for name in names.split()}


METHODS = by_name(_METHODS)
"""Kinds of methods that count on any object, by name."""
ATTRIBUTES = by_name(_ATTRIBUTES)
"""Kinds of attributes that count on any object, by name."""
_TABLE: dict[str, FindingKind | Literal["harmless"]] = {
    **dict.fromkeys((f"torch.{name}" for name in _COMPUTE.split()), "vendor_fallback"),
    **dict.fromkeys(_HARMLESS.split(), "harmless"),
    **by_name(_NAMES),
}


def kind_of(dotted: str) -> FindingKind | Literal["harmless"] | None:
    """Return the kind of a resolved name, by its longest known beginning."""
    parts = dotted.split(".")
    beginnings = (".".join(parts[:length]) for length in range(min(len(parts), 5), 0, -1))
    return next((_TABLE[name] for name in beginnings if name in _TABLE), None)


@cache
def known_below(module: str) -> tuple[str, ...]:
    """Return the names directly below a module that have their own entry."""
    return tuple(name for above, _, name in (entry.rpartition(".") for entry in _TABLE) if above == module)
