"""Pure: encoded images in, training arrays out; all randomness from a generator passed in."""

from dataprep.augment.normalise import IMAGENET_MEAN, IMAGENET_STD
from dataprep.augment.transform import ArrayTransform, Augmentation, Transform, sample_rng

__all__ = [
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "ArrayTransform",
    "Augmentation",
    "Transform",
    "sample_rng",
]
