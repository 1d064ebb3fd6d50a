"""The images to read: existing data, or data that are made here."""

from iobench.data.settings import DataSettings

__all__ = ["DataSettings"]
