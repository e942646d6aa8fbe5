"""What a candidate's text shows before anything runs: forbidden constructs, and whether two candidates are one."""
