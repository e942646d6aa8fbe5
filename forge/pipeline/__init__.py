"""The phases, in order: create, plan, prompt, candidate, verify, benchmark, promote.

Each phase takes recorded state and returns events. No phase calls another, and none writes.
"""
