"""Classes that folders do not tell: ground truth, maps, an order, texts."""

from dataprep.labelling.files import Labelling, load_labelling
from dataprep.labelling.options import LabelOptions

__all__ = ["LabelOptions", "Labelling", "load_labelling"]
