"""Find the other hosts before the first trial, and refuse hosts that do not fit.

A host does not fit if it has another config, another version or another number of hosts than
host 0. The *lobby* is the root of the rendezvous, where hosts announce themselves by a ``Hello``.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from dataprep._version import __version__
from dataprep.errors import ConfigError
from dataprep.message_text import counted
from dataprep.schema import typed
from iobench.config.benchmark import BenchConfig
from iobench.errors import NothingRan
from iobench.machine.environment import describe
from iobench.runner.hosts.messages import (
    PROTOCOL,
    Answer,
    Hello,
    answer_key,
    joined_key,
    refused_key,
)
from iobench.runner.hosts.rendezvous import Rendezvous
from iobench.runner.hosts.settings import HostSettings
from iobench.runner.run_differences import differing_config

_MAX_SHOWN_HOSTS = 8
"""The maximum number of hosts that a message names. It keeps messages short."""


def make_hello(settings: HostSettings, config: BenchConfig) -> Hello:
    """Make the message with which this host introduces itself."""
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
    """Join the meeting of host 0, and return the name of the meeting.

    Args:
        lobby: the root of the rendezvous.
        own: the hello of this host.
        wait_s: how long to wait for the answer of host 0, in seconds.

    Raises:
        ConfigError: host 0 has another config, version or number of hosts.
        NothingRan: host 0 does not answer in time.
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
            f"host 0 did not answer at {lobby.uri} within {wait_s:g} s, so nothing was measured: "
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
        own: the hello of host 0.
        config: the config of the run.
        meeting: the name of this meeting.
    """

    def __init__(self, lobby: Rendezvous, own: Hello, config: BenchConfig, meeting: str) -> None:
        self._lobby, self._own, self._config, self._meeting = lobby, own, config, meeting
        self._hellos: dict[str, Hello | None] = {}
        """The hello of each host, by its key; None if the hello cannot be read."""
        self._refusals: dict[str, str] = {}
        """The reasons of refusals, by the key with which each refused host confirms that it has
        read its refusal."""

    def wait(self, wait_s: float) -> list[Hello]:
        """Wait until all hosts have joined. Returns the other hosts, ordered by their numbers.

        Args:
            wait_s: how long to wait, in seconds.

        Raises:
            ConfigError: a host has been refused, or two hosts have the same number.
            NothingRan: not all hosts have joined in time.
        """
        joined = self._lobby.wait(self._look, wait_s)
        if joined is None:
            # Hosts may have confirmed their answers since the last look.
            confirmations = self._confirmations()
            joined = self._all_joined(confirmations)
        if joined is None:
            arrived = {hello.host for hello in self._joined(confirmations)}
            missing = [number for number in range(1, self._own.hosts) if number not in arrived]
            raise NothingRan(
                f"{describe_hosts(missing)} did not come to {self._lobby.uri} within {wait_s:g} s, "
                "so nothing was measured: start all hosts with the same --rendezvous, or raise "
                "--host-timeout"
            )
        self.clear()
        return joined

    def admitted(self) -> list[Hello]:
        """The hosts that were not refused. Some of them may not have read their answer yet."""
        hellos = [hello for hello in self._hellos.values() if hello is not None]
        return [hello for hello in hellos if refused_key(hello) not in self._refusals]

    def clear(self) -> None:
        """Remove all hellos that were answered, and the answers.

        Among them are hellos of killed processes, which were answered like any other.
        """
        answers = [_answer_key_of(key) for key in self._hellos]
        self._lobby.remove([*self._hellos, *answers])

    def _look(self) -> list[Hello] | None:
        """Answer new hosts, and do as ``_all_joined``."""
        for key in self._lobby.keys("hello-"):
            if key not in self._hellos:
                self._answer(key)
        return self._all_joined(self._confirmations())

    def _all_joined(self, confirmations: set[str]) -> list[Hello] | None:
        """Return the other hosts, ordered by their numbers, if all have joined, else None.

        Args:
            confirmations: the keys with which hosts have confirmed their answers.

        Raises:
            ConfigError: a host has read its refusal, or two hosts have joined with the same number.
        """
        # Host 0 ends only when the refused host has read the reason. A refused hello that a killed
        # process has left is never confirmed, so it does not end this run.
        for key in confirmations:
            if key in self._refusals:
                raise ConfigError(self._refusals[key])
        joined = self._joined(confirmations)
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

    def _joined(self, confirmations: set[str]) -> list[Hello]:
        """The hosts that have joined.

        Args:
            confirmations: the keys with which hosts have confirmed their answers.
        """
        hellos = [hello for hello in self._hellos.values() if hello is not None]
        return [hello for hello in hellos if joined_key(hello) in confirmations]

    def _confirmations(self) -> set[str]:
        """The keys with which hosts have confirmed that they have read their answer."""
        return set(self._lobby.within(self._meeting).keys(""))

    def _answer(self, key: str) -> None:
        """Read the hello with this key, and answer it."""
        content = self._lobby.get(key)
        if content is None:
            return  # The host has given up, and has removed its hello.
        hello, refusal = self._read(content)
        self._hellos[key] = hello
        if refusal and hello is not None:
            self._refusals[refused_key(hello)] = refusal
        self._lobby.put(_answer_key_of(key), asdict(Answer(self._meeting, refusal)))

    def _read(self, content: Mapping[str, Any]) -> tuple[Hello | None, str]:
        """Read a hello, and decide whether its host can take part.

        Returns:
            The hello, or None if another version wrote it with other fields; and the reason of the
            refusal, which is empty if the host can take part.
        """
        version = content.get("version")
        if content.get("protocol") != PROTOCOL or version != __version__:
            refusal = (
                f"host {content.get('host')} has version {version} and host 0 has {__version__}: "
                "install the same version on all hosts"
            )
            return _read_or_none(content), refusal
        hello = typed(Hello, content)
        return hello, self._refusal(hello)

    def _refusal(self, hello: Hello) -> str:
        """The reason why a host of the same version cannot take part; empty if it can."""
        if hello.hosts != self._own.hosts:
            return (
                f"host {hello.host} was started with --hosts {hello.hosts} and host 0 with "
                f"--hosts {self._own.hosts}: give all hosts the same number"
            )
        differences = differing_config(hello.config, self._config)
        if differences:
            return (
                f"host {hello.host} has another config than host 0 ({differences} differ): give "
                "all hosts the same config"
            )
        return ""


def describe_hosts(numbers: Sequence[int]) -> str:
    """The numbers of hosts in words, such as ``host 2`` or ``hosts 2, 5``; at most eight."""
    if len(numbers) == 1:
        return f"host {numbers[0]}"
    shown_numbers = ", ".join(str(number) for number in numbers[:_MAX_SHOWN_HOSTS])
    more = len(numbers) - _MAX_SHOWN_HOSTS
    if more > 0:
        return f"hosts {shown_numbers} and {counted(more, 'other')}"
    return f"hosts {shown_numbers}"


def _answer_key_of(key: str) -> str:
    """The key of the answer to the hello with this key, which ends with the host's token."""
    return answer_key(key.rpartition("-")[2])


def _read_or_none(content: Mapping[str, Any]) -> Hello | None:
    """The hello of a host that may have another version; None if it has other fields."""
    try:
        return typed(Hello, content)
    except ValueError:
        return None
