"""The demonstrations: the whole loop, and a search, in a workspace of their own."""
