"""Says whether a source file could learn more of its own text than its syntax tree has: comments, lines, its name.

Two files with the same tree do the same, unless they can. The check is coarse: it may say so of a harmless file.
"""

import ast

_MODULES = frozenset(
    {
        *("__future__", "abc", "collections", "dataclasses", "einops", "enum", "functools", "itertools", "math"),
        *("numbers", "numpy", "torch", "typing", "typing_extensions"),
    }
)
"""Modules that a file may import. Others could read files or frames."""
_WORDS = frozenset(
    {
        # builtins that reach any name, any file or any source
        *("breakpoint", "delattr", "dir", "eval", "exec", "getattr", "globals", "hasattr", "help", "input", "locals"),
        *("open", "setattr", "vars"),
        # texts that name attributes
        *("attrgetter", "format", "format_map", "methodcaller"),
        # modules that others imported
        *("ast", "builtins", "ctypes", "dis", "importlib", "inspect", "io", "linecache", "logging", "mmap", "os"),
        *("pathlib", "pickle", "pkgutil", "posix", "runpy", "shutil", "subprocess", "sys", "threading", "tokenize"),
        *("traceback", "types", "warnings"),
        # parts of torch and NumPy that read source text, frames or files
        *("DataSource", "ctypeslib", "distributed", "f2py", "from_file", "fromfile", "fromregex", "fx", "genfromtxt"),
        *("hub", "jit", "library", "load", "load_library", "loadtxt", "memmap", "monitor", "multiprocessing"),
        *("open_memmap", "overrides", "package", "profiler", "serialization", "testing", "utils"),
        # frames, code and lines
        *("ag_code", "ag_frame", "co_code", "cr_code", "cr_frame", "f_back", "f_code", "f_lineno", "gi_code"),
        *("gi_frame", "tb_frame", "tb_lineno", "with_traceback"),
    }
)
"""Names that a file must not use."""
_DUNDERS = frozenset({"__init__", "__name__", "__post_init__", "__call__"})
"""Names with two underscores around them that tell a file nothing of its text."""


def may_see_its_text(tree: ast.Module) -> bool:
    """Return True unless nothing in a file can tell it its own comments, line numbers or path."""
    return any(_may_reach(node) for node in ast.walk(tree))


def _may_reach(node: ast.AST) -> bool:
    """Return True if a node looks up a name by which a file could reach its own text."""
    match node:
        case ast.Name(id=name):
            return name in _WORDS or (name.startswith("__") and name not in _DUNDERS)
        case ast.Attribute(attr=name):
            return name in _WORDS or (name.startswith("_") and name not in _DUNDERS)
        case ast.MatchClass(kwd_attrs=names):
            return any(name in _WORDS or name.startswith("_") for name in names)
        case ast.Import(names=aliases):
            return any(_is_foreign(alias.name) for alias in aliases)
        case ast.ImportFrom(module=module, names=aliases, level=level):
            named = (alias.name for alias in aliases)
            known = level == 0 and module is not None and not _is_foreign(module)
            return not known or any(name == "*" or name in _WORDS or name.startswith("_") for name in named)
        case _:
            return False


def _is_foreign(module: str) -> bool:
    """Return True unless a module and all that it is part of are known."""
    root, *parts = module.split(".")
    return root not in _MODULES or any(part in _WORDS or part.startswith("_") for part in parts)
