"""Find the other hosts before anything is measured, and refuse those that do not fit."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from dataprep._version import __version__
from dataprep.counted import counted
from dataprep.errors import ConfigError
from dataprep.schema import typed
from iobench.config import BenchConfig
from iobench.errors import NothingRan
from iobench.hosts.messages import (
    PROTOCOL,
    Answer,
    Hello,
    answer_key,
    joined_key,
    refused_key,
)
from iobench.hosts.rendezvous import Rendezvous
from iobench.hosts.settings import HostSettings
from iobench.machine.environment import describe
from iobench.rundir import differing_config


def hello_of(settings: HostSettings, config: BenchConfig) -> Hello:
    """What this host says about itself."""
    return Hello(
        host=settings.host,
        hosts=settings.hosts,
        token=secrets.token_hex(8),
        version=__version__,
        config=config.model_dump(mode="json"),
        machine=socket.gethostname(),
        environment=describe({}),
    )


def join(lobby: Rendezvous, own: Hello, wait_s: float) -> str:
    """Join the meeting of host 0, and return its name.

    Raises:
        ConfigError: host 0 has another config or version.
        NothingRan: host 0 does not answer.
    """
    lobby.put(own.key, asdict(own))
    content = None
    try:
        content = lobby.wait(lambda: lobby.get(answer_key(own.token)), wait_s)
    finally:
        if content is None:
            lobby.remove([own.key])
    if content is None:
        raise NothingRan(
            f"host 0 did not answer at {lobby.uri} within {wait_s:g} s, and nothing was measured: "
            "start all hosts with the same --rendezvous"
        )
    answer = typed(Answer, content)
    if answer.refused:
        lobby.within(answer.meeting).put(refused_key(own), {})
        raise ConfigError(answer.refused)
    lobby.within(answer.meeting).put(joined_key(own), {})
    return answer.meeting


class Gathering:
    """Host 0's side of joining: it answers each host once, and waits until all have joined.

    Args:
        lobby: the root of the rendezvous.
        own: what host 0 says about itself.
        config: the config of the run.
        meeting: the name of this meeting.
    """

    def __init__(self, lobby: Rendezvous, own: Hello, config: BenchConfig, meeting: str) -> None:
        self._lobby, self._own, self._config, self._meeting = lobby, own, config, meeting
        self._hellos: dict[str, Hello | None] = {}
        """By key; None if a hello cannot be read."""
        self._refusals: dict[str, str] = {}
        """Why a host was refused, by the key by which it confirms that."""

    def wait(self, wait_s: float) -> list[Hello]:
        """The other hosts, in the order of their numbers.

        Raises:
            ConfigError: a host has another config or version, or two have the same number.
            NothingRan: not all hosts came in time.
        """
        joined = self._lobby.wait(self._look, wait_s)
        if joined is None:
            arrived = {hello.host for hello in self._joined(self._confirmed())}
            missing = [number for number in range(1, self._own.hosts) if number not in arrived]
            raise NothingRan(
                f"{hosts_words(missing)} did not come to {self._lobby.uri} within {wait_s:g} s, "
                "and nothing was measured: start all hosts with the same --rendezvous, or raise "
                "--host-timeout"
            )
        self.clear()
        return joined

    def admitted(self) -> list[Hello]:
        """The hosts that may take part, also those that have not read their answer yet."""
        return [
            hello
            for hello in self._hellos.values()
            if hello is not None and refused_key(hello) not in self._refusals
        ]

    def clear(self) -> None:
        """Remove all hellos and answers, also those of earlier runs that were killed."""
        self._lobby.remove([*self._hellos, *map(_answer_to, self._hellos)])

    def _look(self) -> list[Hello] | None:
        """Answer new hosts; the other hosts if all have joined."""
        for key in self._lobby.keys("hello-"):
            if key not in self._hellos:
                self._answer(key)
        confirmed = self._confirmed()
        for key in confirmed:
            if key in self._refusals:
                raise ConfigError(self._refusals[key])
        joined = self._joined(confirmed)
        numbers = sorted(hello.host for hello in joined)
        for number in numbers:
            if numbers.count(number) > 1:
                raise ConfigError(
                    f"two processes are host {number}: start one process on each host, and give "
                    "each its own --host"
                )
        if numbers == list(range(1, self._own.hosts)):
            return sorted(joined, key=lambda hello: hello.host)
        return None

    def _joined(self, confirmed: set[str]) -> list[Hello]:
        hellos = [hello for hello in self._hellos.values() if hello is not None]
        return [hello for hello in hellos if joined_key(hello) in confirmed]

    def _confirmed(self) -> set[str]:
        return set(self._lobby.within(self._meeting).keys(""))

    def _answer(self, key: str) -> None:
        content = self._lobby.get(key)
        if content is None:
            return  # the host has given up
        hello, refused = self._read(content)
        self._hellos[key] = hello
        if refused and hello is not None:
            self._refusals[refused_key(hello)] = refused
        self._lobby.put(_answer_to(key), asdict(Answer(self._meeting, refused)))

    def _read(self, content: Mapping[str, Any]) -> tuple[Hello | None, str]:
        """A hello, if it can be read, and why it is refused, if it is."""
        version = content.get("version")
        if content.get("protocol") != PROTOCOL or version != __version__:
            why = (
                f"host {content.get('host')} has version {version} and host 0 has {__version__}: "
                "install the same version on all hosts"
            )
            return _read_or_none(content), why
        hello = typed(Hello, content)
        return hello, self._refusal(hello)

    def _refusal(self, hello: Hello) -> str:
        """Why a host of the same version cannot take part; empty if it can."""
        if hello.hosts != self._own.hosts:
            return (
                f"host {hello.host} was started with --hosts {hello.hosts} and host 0 with "
                f"--hosts {self._own.hosts}: give all hosts the same number"
            )
        if differing := differing_config(hello.config, self._config):
            return (
                f"host {hello.host} has another config than host 0 ({differing} differ): give all "
                "hosts the same config"
            )
        return ""


def hosts_words(numbers: Sequence[int]) -> str:
    """``host 2``, ``hosts 2, 5``; of many, the first and their number."""
    if len(numbers) == 1:
        return f"host {numbers[0]}"
    shown = ", ".join(map(str, numbers[:8]))
    more = f" and {counted(len(numbers) - 8, 'other')}" if len(numbers) > 8 else ""
    return f"hosts {shown}{more}"


def _answer_to(key: str) -> str:
    """The key of the answer to the hello with this key."""
    return answer_key(key.rpartition("-")[2])


def _read_or_none(content: Mapping[str, Any]) -> Hello | None:
    try:
        return typed(Hello, content)
    except ValueError:
        return None
