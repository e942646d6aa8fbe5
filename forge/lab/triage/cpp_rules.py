"""Finds places in C++ text token by token: calls, headers, statics.

It doesn't know types, so only plain cases count.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from forge.domain.source_finding import FindingKind
from forge.lab.triage.cpp_tokens import Token, tokens
from forge.lab.triage.cuda_rules import device_parts, scan_device

_CALLS: dict[FindingKind, str] = {
    "foreign_code": """
        dlopen dlsym dlmopen syscall asm __asm__ __asm cuModuleLoad cuModuleLoadData cuModuleLoadDataEx
        cuModuleLoadFatBinary cuLibraryLoadData cuLibraryLoadFromFile cudaLibraryLoadData cudaLibraryLoadFromFile
    """,
    "threads": """
        pthread_create thrd_create jthread async signal sigaction setitimer timer_create atexit cudaStreamCreate
        cudaStreamCreateWithFlags cudaLaunchHostFunc cudaStreamAddCallback
    """,
    "environment": "getenv secure_getenv setenv putenv sched_setaffinity omp_set_num_threads",
    "files": """
        fopen freopen fdopen open openat creat mmap memfd_create shm_open tmpfile mkstemp unlink remove rename opendir
        readlink ifstream ofstream fstream filebuf
    """,
    "processes": """
        fork vfork execl execle execlp execv execve execvp execvpe posix_spawn posix_spawnp popen system ptrace
        process_vm_readv process_vm_writev
    """,
    "clock": """
        clock_gettime gettimeofday clock64 clock steady_clock system_clock high_resolution_clock __rdtsc __rdtscp
        omp_get_wtime cudaEventElapsedTime
    """,
    "randomness": "rand srand random drand48 mt19937 mt19937_64 random_device getrandom arc4random curand_init",
    "introspection": "backtrace dl_iterate_phdr getauxval PyGILState_Ensure",
    "eval_exec": "nvrtcCompileProgram",
}
_BY_CALL: dict[str, FindingKind] = {name: kind for kind, names in _CALLS.items() for name in names.split()}
_TYPES_LISTED = """
    jthread ifstream ofstream fstream filebuf mt19937 mt19937_64 random_device steady_clock system_clock
    high_resolution_clock asm __asm__ __asm
    """
_ASSEMBLY = frozenset({"asm", "__asm__", "__asm"})
_TYPES = frozenset(_TYPES_LISTED.split())
"""Names that count wherever they are mentioned; the others count only if they are called."""
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
Seen = tuple[FindingKind, Token, Token]
"""Finding of one place: its kind, and its first and last token."""


def scan(text: str, *, cuda: bool) -> Iterator[Seen]:
    """Yield every relevant place in one C++ text; in CUDA text, device code may be assembly."""
    found = list(tokens(text))
    parts = device_parts(found)
    inside = {i for part in parts for i in part.body} if cuda else set[int]()
    yield from _headers(found)
    yield from _names(found, assembly=inside)
    yield from _statics(found)
    yield from scan_device(found, parts)


def _headers(found: Sequence[Token]) -> Iterator[Seen]:
    for token in found:
        if token.kind == "sign" and token.text == "##":
            yield "eval_exec", token, token
        if token.kind != "header":
            continue
        path = token.text[1:-1]
        if path.startswith(("/", "..")) or token.text.startswith('"'):
            yield "files", token, token
        for kind, beginnings in _HEADERS.items():
            if path.startswith(beginnings):
                yield kind, token, token


def _names(found: Sequence[Token], *, assembly: AbstractSet[int]) -> Iterator[Seen]:
    closing = _closing(found)
    defined = {found[i].text for i in range(len(found)) if _defines(found, i, closing)}
    for i, token in enumerate(found):
        if token.kind != "word" or token.text in defined or _is_member(found, i):
            continue
        if i in assembly and token.text in _ASSEMBLY:
            continue
        kind = _BY_CALL.get(token.text)
        if kind is not None and (token.text in _TYPES or _called(found, i)):
            yield kind, token, token
        elif token.text.startswith(_OF_THE_INTERPRETER):
            yield "frames", token, token
        elif token.text == "thread" and _qualified_by(found, i, {"std"}) and _text(found, i + 1) != "::":
            yield "threads", token, token
        elif token.text.startswith(_VENDOR_PREFIXES) or (
            token.text in _TORCH_COMPUTE and _qualified_by(found, i, {"at", "torch"})
        ):
            yield "vendor_fallback", token, token


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
            yield "state", token, token
        if token.text not in _TRANSPARENT:
            before = token.text


def _is_lasting(found: Sequence[Token], i: int) -> bool:
    if found[i].kind != "word" or found[i].text not in {"static", "thread_local"}:
        return False
    in_a_pragma = _text(found, i - 1) in {"(", ","}
    return not in_a_pragma and not {_text(found, i + 1), _text(found, i + 2)} & {"const", "constexpr"}


def _closing(found: Sequence[Token]) -> dict[int, int]:
    """Return the position of each opening parenthesis's partner."""
    waiting: list[int] = []
    partner: dict[int, int] = {}
    for i, token in enumerate(found):
        if token.kind == "sign" and token.text == "(":
            waiting.append(i)
        elif token.kind == "sign" and token.text == ")" and waiting:
            partner[waiting.pop()] = i
    return partner


def _defines(found: Sequence[Token], i: int, closing: Mapping[int, int]) -> bool:
    """Return whether the text defines a function of this name: its parameters are followed by a body.

    A mere declaration names a function of a library.
    """
    if not _declares(found, i) or i + 1 not in closing:
        return False
    after = closing[i + 1] + 1
    while _text(found, after) in _TRANSPARENT:
        after += 1
    return _text(found, after) in {"{", "->"}


def _declares(found: Sequence[Token], i: int) -> bool:
    """Return whether a word before a parenthesis follows a type, as the name of a function that is declared does."""
    previous = found[i - 1] if i else None
    if previous is None or found[i].kind != "word" or not _called(found, i):
        return False
    return (previous.kind == "word" and previous.text not in _STATEMENTS) or (
        previous.text in {"*", "&"} and _returns(found, i)
    )


def _returns(found: Sequence[Token], i: int) -> bool:
    return i >= 2 and found[i - 2].kind == "word" and found[i - 2].text not in _STATEMENTS


def _called(found: Sequence[Token], i: int) -> bool:
    return _text(found, i + 1) == "("


def _is_member(found: Sequence[Token], i: int) -> bool:
    return _text(found, i - 1) in {".", "->"}


def _qualified_by(found: Sequence[Token], i: int, spaces: set[str]) -> bool:
    return _text(found, i - 1) == "::" and _text(found, i - 2) in spaces


def _text(found: Sequence[Token], i: int) -> str:
    return found[i].text if 0 <= i < len(found) else ""
