"""Judges candidates on inputs they haven't seen, by an oracle they can't reach and a clock they can't control.

It returns values and imports neither events nor ledger, so that a judge can't write history.
"""
