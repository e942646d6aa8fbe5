"""Guesses of a lone kernel.py in which language it is, and which of its functions is the entry point."""

import ast
from collections.abc import Sequence

from forge.domain.candidate import BUILDS
from forge.domain.parsed_source import defines
from forge.domain.task import LanguageName
from forge.errors import UsageError
from forge.languages import LANGUAGES


def guessed_language(tree: ast.Module, kernel: bytes) -> LanguageName:
    """Return the language that a kernel's imports, constants and calls show; PyTorch if none is shown.

    `tree` is empty if the kernel doesn't parse. The language is then guessed from the text.
    """
    if not tree.body:
        return _language_in_text(kernel)
    for language, build in BUILDS.items():
        if defines(tree, build().source):
            return language
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            given = {word.arg for word in node.keywords}
            for language in BUILDS:
                if f"{language}_sources" in given:
                    return language
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    packages = {name.partition(".")[0] for name in imported}
    return next((name for name, one in LANGUAGES.items() if one.own_modules & packages), "torch")


def guessed_entry(tree: ast.Module, wanted: Sequence[str]) -> str:
    """Return the entry point: the first of the wanted names that the kernel defines, or its only public function.

    Raises UsageError if several functions could be meant, or none.
    """
    kinds = (ast.FunctionDef, ast.ClassDef)
    defined = [node.name for node in tree.body if isinstance(node, kinds)]
    for name in wanted:
        if name in defined or defines(tree, name):
            return name
    functions = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and not node.decorator_list
    ]
    if len(functions) == 1 or not tree.body:
        return functions[0] if functions else wanted[-1]
    raise UsageError(
        f"the kernel's entry point isn't clear: it defines {', '.join(defined[:8]) or 'nothing'}; expected "
        f"{' or '.join(wanted)}, or --entry-point NAME"
    )


def _language_in_text(kernel: bytes) -> LanguageName:
    """Return the language that the text of a kernel that doesn't parse shows; PyTorch if none is shown."""
    for language, build in BUILDS.items():
        if build().source.encode() in kernel:
            return language
    lines = [line.split() for line in kernel.decode(errors="replace").splitlines()]
    named = {line[1].partition(".")[0] for line in lines if len(line) > 1 and line[0] in ("import", "from")}
    return next((name for name, one in LANGUAGES.items() if one.own_modules & named), "torch")
