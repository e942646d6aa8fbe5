"""From a GPU candidate's call to a launch plan that answers rightly without the candidate's host code.

- `capture`: a guest lists one call; the host reads what came out
- `launcher`: a guest of our own that launches a plan, and can be asked like any candidate
- `examine`: the plan in front of the judge, beside the calls that it stands for
"""
