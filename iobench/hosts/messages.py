"""What hosts tell each other, and the keys of these objects.

In the lobby, the root of the rendezvous, each host but the first announces itself:

- ``hello-HOST-TOKEN``: a host that wants to join. Its token is random, so that an object that an
  earlier run left behind is never taken for one of this run.
- ``answer-TOKEN``: the answer of host 0: the name of the meeting, or a refusal.

All other objects are below ``MEETING/``, the name of one invocation of host 0:

- ``joined-HOST-TOKEN``, ``refused-HOST-TOKEN``: the host has read the answer.
- ``now``: what host 0 says; each statement replaces the one before.
- ``TURN-ready-HOST``: the trial is prepared on this host.
- ``TURN-steady-HOST``: the host looks for the signal to begin at short intervals.
- ``TURN-here-HOST``: the host missed the beginning of the trial, and will take part in the next.
- ``TURN-outcome-HOST``: the result of this host.
- ``left-HOST``: the host has read that the run is over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from iobench.trial import HostPart

PROTOCOL = 1
"""Number of this form of communication: hosts with other numbers cannot be understood."""

Phase = Literal["start", "prepare", "assemble", "go", "abandon", "end"]

NOW = "now"


@dataclass(frozen=True, slots=True)
class Hello:
    """A host that wants to join.

    Attributes:
        host, hosts: its number, and the number of hosts that it expects.
        token: a random name of this process.
        version: the version of this package.
        config: the whole config of the run.
        machine: the name of the machine, for messages on a terminal; no result keeps it.
        environment: a description of the machine, as results keep it.
    """

    host: int
    hosts: int
    token: str
    version: str
    config: Mapping[str, Any]
    machine: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)
    protocol: int = PROTOCOL

    @property
    def key(self) -> str:
        """The key of this object."""
        return f"hello-{self.host}-{self.token}"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of host 0: ``refused`` says why the host cannot join; empty if it can."""

    meeting: str
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Statement:
    """What host 0 says.

    Attributes:
        turn: the number of the trial among those of this invocation, from 1.
        phase: ``start`` before the first trial; ``prepare`` a trial; ``assemble``: all hosts are
            prepared; ``go``: begin; ``abandon``: do not measure this trial; ``end`` of the run.
        hosts: the hosts that take part in the trial.
        idle: hosts that have nothing to do in this trial, which is for fewer hosts.
        trial, repeat: its id, and the number of its repeat.
        run_id, seed: of the run; each host derives its own names and orders from them.
        resumed: whether the run continues an earlier one.
        reason: why a trial is abandoned, or why the run ended early.
        exit_code: of the whole run, with ``end``.
    """

    turn: int
    phase: Phase
    hosts: Sequence[int] = ()
    idle: Sequence[int] = ()
    trial: str = ""
    repeat: int = 0
    run_id: str = ""
    seed: int = 0
    resumed: bool = False
    reason: str = ""
    exit_code: int = 0


@dataclass(frozen=True, slots=True)
class HostOutcome:
    """The result of one host.

    Attributes:
        part: its part of the trial.
        requests: the requests to the rendezvous that this host has sent so far.
        leaves: whether the host takes part in no further trial.
    """

    part: HostPart
    requests: Mapping[str, int] = field(default_factory=dict)
    leaves: bool = False


def answer_key(token: str) -> str:
    """The key of the answer to a host."""
    return f"answer-{token}"


def joined_key(hello: Hello) -> str:
    """The key by which a host confirms that it has joined."""
    return f"joined-{hello.host}-{hello.token}"


def refused_key(hello: Hello) -> str:
    """The key by which a host confirms that it has read a refusal."""
    return f"refused-{hello.host}-{hello.token}"


def left_key(host: int) -> str:
    """The key by which a host confirms that it has read the end of the run."""
    return f"left-{host}"


def turn_prefix(turn: int) -> str:
    """The beginning of all keys of one trial."""
    return f"{turn:06}-"


def turn_key(turn: int, what: str, host: int) -> str:
    """The key of what a host says in one trial: ``ready``, ``steady``, ``outcome``, ``here``."""
    return f"{turn_prefix(turn)}{what}-{host}"


def parsed_turn_key(key: str) -> tuple[str, int]:
    """What a key of a trial says, and the host: ``("ready", 2)``."""
    _, what, host = key.rsplit("-", 2)
    return what, int(host)
