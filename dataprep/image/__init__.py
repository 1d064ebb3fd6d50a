"""PURE. Convert encoded images to JPEG, PNG or WebP. Sources can have many other formats."""

from dataprep.image.convert import Action, Converted, check, convert
from dataprep.image.policy import ImagePolicy, Mode

__all__ = ["Action", "Converted", "ImagePolicy", "Mode", "check", "convert"]
