"""A procedural tree of JPEGs like ImageNet's, with or without defects, for demo and tests."""

from dataprep.sample.defects import Defect
from dataprep.sample.drawing import Style, draw_image, draw_style
from dataprep.sample.ilsvrc import draw_ilsvrc
from dataprep.sample.tree import SampleTree, draw_tree

__all__ = ["Defect", "SampleTree", "Style", "draw_ilsvrc", "draw_image", "draw_style", "draw_tree"]
