"""The machine and the libraries, without a name of host, user or account."""

from iobench.environment.description import describe
from iobench.environment.nvidia import gpus
from iobench.environment.packages import libraries

__all__ = ["describe", "gpus", "libraries"]
