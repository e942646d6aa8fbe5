"""Turns a GPU candidate's call into a launch plan that answers correctly without the candidate's host code.

- `capture`: a guest lists one call; the host reads the list
- `launcher`: a trusted guest that launches a plan, and is asked like any candidate
- `examine`: the judge compares the plan with the calls that it replaces
"""
