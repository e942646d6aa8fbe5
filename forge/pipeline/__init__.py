"""The phases, in order: create, plan, prompt, submit, verify, benchmark, promote.

Each phase takes recorded state and returns events. No phase calls another, and none writes.
"""
