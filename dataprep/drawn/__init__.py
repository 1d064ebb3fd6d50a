"""Draw image collections that resemble ImageNet, for ``dataprep sample``, the demo and tests."""

from dataprep.drawn.ilsvrc import draw_ilsvrc
from dataprep.drawn.tree import SampleTree, draw_tree

__all__ = ["SampleTree", "draw_ilsvrc", "draw_tree"]
