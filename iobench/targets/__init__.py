"""What paths and stores are: EBS, instance store, NVMe, tmpfs, NFS, FUSE, or unknown."""

from iobench.targets.describe import describe_target
from iobench.targets.kinds import KINDS, kind_name, reach
from iobench.targets.stores import describe_store

__all__ = ["KINDS", "describe_store", "describe_target", "kind_name", "reach"]
