"""The version of this package. The build reads it, and manifests contain it."""

__version__ = "0.1.0"
