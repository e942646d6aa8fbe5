"""The machine that a command uses: its GPU, the place where jobs run, its ceilings, its terminal."""
