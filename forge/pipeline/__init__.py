"""The phases, in order: create, plan, prompt, candidate, verify, benchmark, promote.

Each takes recorded state and gives events; none calls another, and none writes.
"""
