"""Draw images like those of ImageNet, with or without defects, for the demo and for tests."""

from dataprep.drawn.ilsvrc import draw_ilsvrc
from dataprep.drawn.tree import SampleTree, draw_tree

__all__ = ["SampleTree", "draw_ilsvrc", "draw_tree"]
