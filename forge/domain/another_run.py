"""The last words of a reason after which only another run can decide; apart, so that lists of runs stay quick."""

IN_ANOTHER_RUN = "an attempt's samples count in the run's next ones, so measure in another run"
"""Last part of the reason text when another attempt in the same run can't decide."""
