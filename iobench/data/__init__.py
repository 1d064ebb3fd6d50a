"""The images that are read: taken as they are, or made."""

from iobench.data.settings import DataSettings

__all__ = ["DataSettings"]
