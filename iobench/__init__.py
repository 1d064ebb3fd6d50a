"""Measures whether storage and loaders can feed a training loop."""
