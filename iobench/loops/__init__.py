"""Trials that run a loop: a loader alone, or a whole training loop."""
