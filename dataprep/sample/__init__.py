"""Drawn photographs like ImageNet's, with or without defects, for demo and tests."""

from dataprep.sample.ilsvrc import draw_ilsvrc
from dataprep.sample.tree import SampleTree, draw_tree

__all__ = ["SampleTree", "draw_ilsvrc", "draw_tree"]
