"""Measures times by the host's slope and by graph replay, with the processes, ceilings and statistics for both."""
