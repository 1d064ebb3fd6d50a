"""Trials and their results, as they are saved, with the statistics over repeats."""
