"""The settings of a benchmark, and the trials that follow from them."""
