"""What every adapter takes: a data set that is open."""

from __future__ import annotations

from dataprep.dataset import Dataset


def require_open(dataset: object, format: str = "") -> None:
    """Refuse what is no data set, such as the path of one.

    Raises:
        TypeError: it says how one is opened; ``format`` is the one that the adapter reads.
    """
    if not isinstance(dataset, Dataset):
        where = repr(dataset) if isinstance(dataset, str) else "path"
        chosen = f", format={format!r}" if format else ""
        raise TypeError(
            f"a data set that is open, not {type(dataset).__name__}: "
            f"dataprep.open({where}, 'train'{chosen})"
        )
