"""Runs beside hostile code.

Forge copies this folder into the sandbox, next to the candidate, and nothing else of its code. It imports the
standard library and torch, never the rest of the package. Every statement that it makes is only a claim.
"""
