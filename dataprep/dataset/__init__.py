"""The read side: a complete split as a sequence of samples."""

from dataprep.dataset.dataset import Dataset, open_dataset
from dataprep.dataset.images import Images
from dataprep.dataset.shards import Shard

__all__ = ["Dataset", "Images", "Shard", "open_dataset"]
