"""An HTTP proxy that injects faults between a client and an S3-compatible server.

It runs in the process that tests, on loopback, and disturbs the requests it is told to::

    import boto3
    from iobench.faults import FaultProxy, FlipByte, Match, Rule, Status

    rules = [
        Rule(Match("PUT", times=1), Status(503, "SlowDown", "Please reduce your request rate.")),
        Rule(Match("GET", r"/shards/.*\\.tfrecord", skip=2, times=1), FlipByte(1000)),
    ]
    with FaultProxy("http://127.0.0.1:5000", rules) as proxy:
        client = boto3.client("s3", endpoint_url=proxy.url)
        client.put_object(Bucket="data", Key="shards/0.tfrecord", Body=b"...")
        print(proxy.requests)  # the PUT that was refused, and its retry
"""

from iobench.faults.kinds import (
    Delay,
    Fault,
    FlipByte,
    Lag,
    RateLimit,
    Reset,
    SetHeader,
    Shorten,
    Stall,
    Status,
    Truncate,
)
from iobench.faults.log import Request
from iobench.faults.proxy import FaultProxy
from iobench.faults.rules import Match, Rule, Schedule

__all__ = [
    "Delay",
    "Fault",
    "FaultProxy",
    "FlipByte",
    "Lag",
    "Match",
    "RateLimit",
    "Request",
    "Reset",
    "Rule",
    "Schedule",
    "SetHeader",
    "Shorten",
    "Stall",
    "Status",
    "Truncate",
]
