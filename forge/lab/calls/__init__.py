"""Calls a loaded candidate: building, loading, laying out operands, checking outputs and writing refusals."""
