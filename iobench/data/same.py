"""No figures of two data sets under one name in one run."""

from __future__ import annotations

from collections.abc import Mapping

from iobench.data.made import fingerprint
from iobench.trial import Place


class SameData:
    """Which shards trials have read, by name; ``fingerprints`` are those of trials before."""

    def __init__(self, fingerprints: Mapping[str, str]) -> None:
        self.fingerprints = dict(fingerprints)

    def made_anew(self, places: Mapping[str, Place]) -> str:
        """Which of ``places`` hold other shards than trials before have read; empty for none.

        What is seen for the first time is noted. Only shards on a disk are looked at.
        """
        for name, place in places.items():
            found = fingerprint(place)
            if found is not None and self.fingerprints.setdefault(name, found) != found:
                return (
                    f"{name} ({place.uri}) were made anew since this run began, and are others: "
                    "their figures do not belong beside those before, choose another --output"
                )
        return ""
