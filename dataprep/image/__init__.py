"""PURE. Encoded bytes in, a JPEG, PNG or WebP out."""

from dataprep.image.convert import Action, Converted, check, convert
from dataprep.image.policy import ImagePolicy, Mode

__all__ = ["Action", "Converted", "ImagePolicy", "Mode", "check", "convert"]
