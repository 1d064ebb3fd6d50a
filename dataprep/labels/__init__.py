"""Classes and their labels, files that describe classes, and bounding boxes."""

from dataprep.labels.space import Label, LabelSpace, are_whole, is_number, is_synset

__all__ = ["Label", "LabelSpace", "are_whole", "is_number", "is_synset"]
