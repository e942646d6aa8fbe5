"""Runs beside hostile code.

Forge copies this folder into the sandbox, next to the candidate, with the `guest.py` of its language. It imports the
standard library and torch, and nothing else of Forge; only `model.py` loads `forge.adopt` and `forge.lookup`, which
the host copied for a model. Every statement that it makes is only a claim.
"""
