"""PURE. Convert encoded images of many formats to JPEG, PNG or WebP."""

from dataprep.image.convert import Action, Converted, check, convert
from dataprep.image.policy import ImagePolicy, Mode

__all__ = ["Action", "Converted", "ImagePolicy", "Mode", "check", "convert"]
