"""PURE. How much an object store can be asked for in some seconds: an upper bound."""

from __future__ import annotations

from typing import NamedTuple


class Rates(NamedTuple):
    """What no store and no link exceeds: a request takes at least so long, and so on."""

    request_s: float
    connection_bytes_per_s: float
    link_bytes_per_s: float
    words: str

    def most_requests(self, streams: int, seconds: float, each_bytes: float) -> float:
        """So many at most by so many connections, whose last requests are finished."""
        one_s = self.request_s + each_bytes / self.connection_bytes_per_s
        most = streams * (seconds / one_s + 1)
        if each_bytes > 0:
            most = min(most, self.most_bytes(streams, seconds) / each_bytes + streams)
        return most

    def most_bytes(self, streams: int, seconds: float) -> float:
        """So many at most by all connections together, what they finish at the end aside."""
        return min(self.link_bytes_per_s, streams * self.connection_bytes_per_s) * seconds


_LINK_BYTES_PER_S = 12.5e9

# An independent measurement in region has 20 ms to the first byte; Amazon's performance guidelines
# reckon 85 to 90 MB/s for a connection that downloads.
_AMAZON = Rates(
    0.010,
    100e6,
    _LINK_BYTES_PER_S,
    "S3 takes 10 ms or more to answer, a connection gives 100 MB/s or less, no request is repeated",
)
_ANOTHER = Rates(
    0.000_2,
    _LINK_BYTES_PER_S,
    _LINK_BYTES_PER_S,
    "a server other than Amazon's takes 0.2 ms or more to answer, over a link of 100 Gbit/s",
)


def rates_of(*, is_amazon: bool) -> Rates:
    """Of Amazon's S3, or of whatever else speaks its protocol."""
    return _AMAZON if is_amazon else _ANOTHER
