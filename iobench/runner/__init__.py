"""Run a benchmark: one trial after another, on one host or on several."""
