"""Imports torch in another thread, while the caller waits for the first guest, which imports it too.

The import takes more than a second of one processor, and every judgement needs it.
"""

import contextlib
import importlib
import sys
import threading


def import_torch_beside() -> None:
    """Begin the import, if torch isn't there; an `import torch` of any thread waits until it is done.

    A program that ends earlier waits for it, since a thread can't be stopped amid an import.
    """
    if "torch" not in sys.modules:
        threading.Thread(target=_import, name="import-torch").start()


def _import() -> None:
    with contextlib.suppress(ImportError):  # the caller's own import says so
        importlib.import_module("torch")
