"""Finds places in C++ and CUDA text token by token: calls, headers, statics, state of a device.

It doesn't know types, so only plain cases count. Device code is the part in braces after `__global__` or
`__device__`; inline PTX is allowed there.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from forge.domain.source_finding import FindingKind
from forge.lab.triage.cpp_tokens import Token, tokens
from forge.lab.triage.rules import by_name

_CALLED: dict[FindingKind, str] = {
    "foreign_code": "dlopen dlsym syscall cuModuleLoad cuModuleLoadData cuLibraryLoadData cudaLibraryLoadData",
    "threads": """
        pthread_create async signal sigaction atexit cudaStreamCreate cudaStreamCreateWithFlags cudaLaunchHostFunc
        timer_create
    """,
    "environment": "getenv setenv sched_setaffinity omp_set_num_threads",
    "files": "fopen open mmap unlink remove rename",
    "processes": """
        fork vfork execl execle execlp execv execve execvp execvpe posix_spawn posix_spawnp popen system ptrace
        process_vm_readv process_vm_writev
    """,
    "clock": "clock_gettime clock64 clock __rdtsc omp_get_wtime cudaEventElapsedTime",
    "randomness": "rand random getrandom curand_init",
    "introspection": "backtrace PyGILState_Ensure",
    "eval_exec": "nvrtcCompileProgram",
}
_MENTIONED: dict[FindingKind, str] = {
    "foreign_code": "asm __asm__",
    "threads": "jthread",
    "files": "ifstream ofstream fstream",
    "clock": "steady_clock system_clock high_resolution_clock",
    "randomness": "mt19937 random_device",
}
_BY_CALL, _BY_MENTION = by_name(_CALLED), by_name(_MENTIONED)
"""Kinds of names that count if they are called, and of those that count wherever they are mentioned."""
_OF_THE_INTERPRETER = ("PyRun_", "PyImport_", "PyFrame_", "PyThreadState_", "PySys_", "PyEval_Get", "PyEval_Eval")
"""Beginnings of the names by which C++ code reaches Python's frames and modules, the harness's among them. They count
wherever they are mentioned."""
_VENDOR_PREFIXES = ("cublas", "cudnn", "cblas_", "cusparse", "cufft", "rocblas", "mkl_", "dnnl_", "cutlass")
_TORCH_COMPUTE_LISTED = """
    matmul mm bmm addmm einsum softmax layer_norm rms_norm native_layer_norm mean sum var norm rsqrt square linear
    scaled_dot_product_attention
    """
_TORCH_COMPUTE = frozenset(_TORCH_COMPUTE_LISTED.split())
_HEADERS: dict[FindingKind, tuple[str, ...]] = {
    "network": ("sys/socket.h", "netinet/", "arpa/inet.h", "netdb.h", "curl/", "ifaddrs.h"),
    "foreign_kernel": ("cutlass/", "cute/", "flash", "xformers/", "cub/", "thrust/"),
    "vendor_fallback": ("cublas", "cudnn", "cblas", "mkl", "dnnl", "oneapi/dnnl", "Eigen/"),
}
_STATEMENTS = frozenset({"return", "else", "do", "case", "throw", "co_return", "co_await", "co_yield"})
_TRANSPARENT = frozenset({"const", "noexcept", "mutable", "override", "final"})
_SPECIFIERS = frozenset({"__global__", "__device__", "__managed__"})
_CONSTANT = frozenset({"const", "constexpr", "__constant__", "__shared__", "extern"})
"""Words of a declaration for the device whose variable isn't written, or doesn't outlive a launch."""
_ATTRIBUTES = frozenset(
    {"__align__", "alignas", "__launch_bounds__", "__cluster_dims__", "__maxnreg__", "__attribute__"}
)
"""Words whose parentheses aren't a function's parameters."""
_PTX_CLOCKS = ("%clock", "%globaltimer")
"""Registers of PTX that tell the time."""
_MACRO_WORDS = 4
"""Number of tokens before a specifier that are searched for `#define`. Chosen; a macro for specifiers begins with
them."""
Seen = tuple[FindingKind, Token]


def scan(text: str, *, cuda: bool) -> Iterator[Seen]:
    """Yield every relevant place in one C++ text; in CUDA text, device code may be assembly."""
    found = list(tokens(text))
    device, variables = _device_code(found)
    yield from _headers(found)
    yield from _names(found, assembly=frozenset(device if cuda else ()))
    yield from _statics(found)
    for i in variables:
        yield "state", found[i]
    for i in device:
        if found[i].text == "<<" and _text(found, i + 1) == "<" and found[i + 1].offset == found[i].offset + 2:
            yield "threads", found[i]
        if found[i].kind == "string" and any(clock in found[i].text for clock in _PTX_CLOCKS):
            yield "clock", found[i]


def _headers(found: Sequence[Token]) -> Iterator[Seen]:
    for token in found:
        if token.kind == "sign" and token.text == "##":
            yield "eval_exec", token
        if token.kind != "header":
            continue
        path = token.text[1:-1]
        if path.startswith(("/", "..")) or token.text.startswith('"'):
            yield "files", token
        for kind, beginnings in _HEADERS.items():
            if path.startswith(beginnings):
                yield kind, token


def _names(found: Sequence[Token], *, assembly: AbstractSet[int]) -> Iterator[Seen]:
    defined = _defined(found)
    for i, token in enumerate(found):
        if token.kind != "word" or token.text in defined or _text(found, i - 1) in {".", "->"}:
            continue
        called = _BY_CALL.get(token.text) if _text(found, i + 1) == "(" else None
        kind = called or _BY_MENTION.get(token.text)
        if kind is not None and not (kind == "foreign_code" and i in assembly):
            yield kind, token
        elif token.text.startswith(_OF_THE_INTERPRETER):
            yield "frames", token
        elif token.text == "thread" and _qualified_by(found, i, {"std"}) and _text(found, i + 1) != "::":
            yield "threads", token
        elif token.text.startswith(_VENDOR_PREFIXES) or (
            token.text in _TORCH_COMPUTE and _qualified_by(found, i, {"at", "torch"})
        ):
            yield "vendor_fallback", token


def _statics(found: Sequence[Token]) -> Iterator[Seen]:
    """Yield variables that outlive the call: `static` or `thread_local` in a function's body, unless constant."""
    bodies: list[bool] = []
    before = ""
    for i, token in enumerate(found):
        if token.kind == "sign" and token.text == "{":
            bodies.append((bool(bodies) and bodies[-1]) or before == ")")
        elif token.kind == "sign" and token.text == "}" and bodies:
            bodies.pop()
        elif bodies and bodies[-1] and _is_lasting(found, i):
            yield "state", token
        if token.text not in _TRANSPARENT:
            before = token.text


def _is_lasting(found: Sequence[Token], i: int) -> bool:
    if found[i].kind != "word" or found[i].text not in {"static", "thread_local"}:
        return False
    in_a_pragma = _text(found, i - 1) in {"(", ","}
    return not in_a_pragma and not {_text(found, i + 1), _text(found, i + 2)} & {"const", "constexpr"}


def _device_code(found: Sequence[Token]) -> tuple[list[int], list[int]]:
    """Return the positions of the tokens in bodies of device functions, and of the specifiers of device variables."""
    inside: list[int] = []
    variables: list[int] = []
    begun, specifier, parentheses, braces, parameters = 0, -1, 0, 0, False
    for i, token in enumerate(found):
        sign = token.text if token.kind == "sign" else ""
        if braces:
            inside.append(i)
            braces += (sign == "{") - (sign == "}")
        elif specifier < 0 and token.kind == "word":
            if token.text in _SPECIFIERS and not _in_a_macro(found, i):
                specifier, parentheses, parameters = i, 0, False
        elif specifier < 0:
            begun = i + 1
        elif sign in {"(", ")"}:
            parentheses += 1 if sign == "(" else -1
            parameters |= sign == "(" and found[i - 1].text not in _ATTRIBUTES
        elif parentheses <= 0 and sign in {";", "=", "{", "}"}:
            if sign == "{" and parameters:
                braces = 1
            elif sign != "}" and (not parameters or sign == "="):
                words = {one.text for one in found[begun:i]}
                variables += [] if words & _CONSTANT else [specifier]
            begun, specifier = i + 1, -1
    return inside, variables


def _in_a_macro(found: Sequence[Token], i: int) -> bool:
    return any(token.kind == "directive" for token in found[max(0, i - _MACRO_WORDS) : i])


def _defined(found: Sequence[Token]) -> set[str]:
    """Return the names of the functions that the text defines: their parameters are followed by a body.

    A mere declaration names a function of a library.
    """
    waiting: list[int] = []
    defined: set[str] = set()
    for i, token in enumerate(found):
        if token.kind == "sign" and token.text == "(":
            waiting.append(i)
        elif token.kind == "sign" and token.text == ")" and waiting:
            name, after = waiting.pop() - 1, i + 1
            while _text(found, after) in _TRANSPARENT:
                after += 1
            if _text(found, after) in {"{", "->"} and _follows_a_type(found, name):
                defined.add(found[name].text)
    return defined


def _follows_a_type(found: Sequence[Token], i: int) -> bool:
    """Return whether a word follows a type, as the name of a function that is declared does."""
    i -= _text(found, i - 1) in {"*", "&"}
    return i > 0 and found[i - 1].kind == "word" and found[i - 1].text not in _STATEMENTS


def _qualified_by(found: Sequence[Token], i: int, spaces: set[str]) -> bool:
    return _text(found, i - 1) == "::" and _text(found, i - 2) in spaces


def _text(found: Sequence[Token], i: int) -> str:
    return found[i].text if 0 <= i < len(found) else ""
