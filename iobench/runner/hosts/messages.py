"""The messages that hosts exchange, and the keys of their objects in the rendezvous.

In the lobby, the root of the rendezvous, each host except host 0 announces itself:

- ``hello-HOST-TOKEN``: a host wants to join. Each process draws a random token, so that it does
  not read an answer to another process.
- ``answer-TOKEN``: the answer of host 0. It has the name of the meeting, and the reason if the host
  is refused.

All other objects are below ``MEETING/``. Each start of host 0 makes a new name. ``TURN`` is the
number of a trial in the meeting:

- ``joined-HOST-TOKEN``, ``refused-HOST-TOKEN``: the host has read the answer.
- ``now``: the message of host 0. Each message replaces the previous one.
- ``TURN-ready-HOST``: the trial is prepared on this host.
- ``TURN-steady-HOST``: all hosts are prepared. This host now reads the message of host 0 at short
  intervals, so that it soon notices the signal to begin.
- ``TURN-here-HOST``: the host is running, but it is not among the hosts of the trial. Host 0 adds
  it to this trial if it can, or else to the next trial.
- ``TURN-outcome-HOST``: the result of this host, or the announcement that it leaves the run.
- ``left-HOST``: the host has read that the run is over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from iobench.results.trial import HostPart

PROTOCOL = 1
"""The version of these messages. Hosts with another version are refused."""

Phase = Literal["start", "prepare", "assemble", "go", "abandon", "end"]
"""What host 0 tells the other hosts (see ``LeaderMessage.phase``)."""
TurnMessage = Literal["ready", "steady", "here", "outcome"]
"""The kind of a message that a host sends in a trial."""

LEADER_KEY = "now"
"""The key of the message of host 0."""


@dataclass(frozen=True, slots=True)
class Hello:
    """A host that wants to join.

    Attributes:
        host: the number of the host.
        hosts: the number of all hosts in the settings of this host.
        token: a random text that identifies the process on the host.
        version: the version of this package on the host.
        config: the whole config of the run.
        machine: the name of the machine, for messages on a terminal. Results do not contain it.
        environment: a description of the machine, as results contain it.
        protocol: the version of the messages that the host sends.
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
        """The key of this object in the lobby."""
        return f"hello-{self.host}-{self.token}"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of host 0 to a host that wants to join.

    Attributes:
        meeting: the name of the meeting.
        refused: the reason why the host cannot join; empty if it can.
    """

    meeting: str
    refused: str = ""


@dataclass(frozen=True, slots=True)
class LeaderMessage:
    """The message of host 0.

    Attributes:
        turn: the number of the trial among the trials of this meeting, from 1; 0 before the first.
        phase: ``start`` before the first trial; ``prepare`` when hosts must prepare a trial;
            ``assemble`` when all hosts are prepared; ``go`` when all hosts must begin; ``abandon``
            if the trial is not measured; ``end`` at the end of the run.
        hosts: the numbers of the hosts that take part in the trial.
        idle: the numbers of the hosts that do not take part, since the trial is for fewer hosts.
        trial: the id of the trial.
        repeat: the number of its repeat.
        run_id: the id of the run; empty until host 0 has opened it. Each host names the files and
            objects of its probes after it.
        seed: the seed of the run. Each host derives its own orders of samples from it.
        resumed: whether the run continues an earlier one.
        reason: why a trial is abandoned, or why the run ended early; otherwise empty.
        exit_code: the exit code of the whole run, with phase ``end``.
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
    """The result of one host in a trial.

    Attributes:
        part: its part of the trial.
        requests: the numbers of the requests to the rendezvous that this host has sent so far in
            the run: ``puts``, ``gets``, ``lists`` and ``deletes``.
        leaves: whether the host leaves the run.
    """

    part: HostPart
    requests: Mapping[str, int] = field(default_factory=dict)
    leaves: bool = False


def answer_key(token: str) -> str:
    """The key of the answer to the host with this token."""
    return f"answer-{token}"


def joined_key(hello: Hello) -> str:
    """The key with which a host confirms that it has joined."""
    return f"joined-{hello.host}-{hello.token}"


def refused_key(hello: Hello) -> str:
    """The key with which a host confirms that it has read its refusal."""
    return f"refused-{hello.host}-{hello.token}"


def left_key(host: int) -> str:
    """The key with which a host confirms that it has read the end of the run."""
    return f"left-{host}"


def turn_prefix(turn: int) -> str:
    """The beginning of all keys of one trial."""
    return f"{turn:06}-"


def turn_key(turn: int, message: TurnMessage, host: int) -> str:
    """The key of a message that a host sends in a trial."""
    return f"{turn_prefix(turn)}{message}-{host}"


def parse_turn_key(key: str) -> tuple[TurnMessage, int]:
    """The message and the number of the host in a key of a trial, such as ``("ready", 2)``."""
    _, message, host = key.rsplit("-", 2)
    return cast(TurnMessage, message), int(host)
