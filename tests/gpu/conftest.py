"""Only on a machine with a GPU: elsewhere nothing in this folder is collected."""

from forge.sandbox.stage import GPU_NODES

collect_ignore_glob = [] if GPU_NODES else ["test_*.py"]
