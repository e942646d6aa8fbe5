"""Solves whole modules: a route, parts that add up, a session for each different part, and the composed candidate."""
