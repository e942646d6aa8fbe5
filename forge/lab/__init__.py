"""Judges candidates: on inputs they haven't seen, against an oracle they can't reach, by a clock they don't hold.

Returns values; imports neither events nor ledger, so that a judge can't write history.
"""
