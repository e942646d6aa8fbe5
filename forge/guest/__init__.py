"""Runs beside hostile code.

This folder is copied into the sandbox, next to the candidate; nothing else of Forge's is. It imports the
standard library and torch, never the rest of the package. Whatever it says is a claim.
"""
