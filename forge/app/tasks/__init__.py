"""Tasks: made from operations or reference files, listed, planned, and told to an author."""
