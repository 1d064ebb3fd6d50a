"""A saved run into advice: read, said, and written as a config for ``dataprep shard``."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dataprep.errors import ConfigError
from iobench.advice import Advice, advise, emitted, words
from iobench.data.given import expanded
from iobench.data.settings import DataSettings
from iobench.errors import NoAdvice
from iobench.result import Result
from iobench.rundir import CONFIG, read
from iobench.whatif import whatif


@dataclass(frozen=True, slots=True)
class Advised:
    """A run and what it says. ``folder`` is the run's."""

    folder: Path
    result: Result
    entries: Sequence[Advice]
    model: Mapping[str, Any]

    @property
    def text(self) -> str:
        """For a terminal.

        Raises:
            NoAdvice: nothing in the run says what is used now.
        """
        return words.text(self.entries, self.model)

    @property
    def json(self) -> str:
        """One object."""
        return json.dumps(words.as_object(self.entries, self.model), allow_nan=False)

    def write_config(self, file: Path) -> str:
        """Write a config of shards, and say what to do with it.

        Raises:
            NoAdvice: no other shards are advised, or their source is not known or not there.
            ConfigError: something else is at ``file`` or where the shards are to go, or it cannot
                be written.
        """
        emitted.require_change(self.entries)
        output = Path.cwd() / file.parent / f"{file.stem}-shards"
        text = emitted.shard_config(self.result, self.entries, self._source(), str(output))
        _write(file, text, output)
        return f"dataprep shard {shlex.quote(str(file))}\n{self._again(output)}"

    def _source(self) -> str:
        """What the run read, from here.

        Raises:
            NoAdvice: it is not known, or not there.
        """
        try:
            data = DataSettings.model_validate(self.result.config.get("data") or {})
        except ValidationError:
            raise NoAdvice("the run does not tell what its images are made of") from None
        told = data.shards or data.source
        found = expanded(told) if told else str(Path(data.folder).expanduser() / data.drawn)
        if "://" in found:
            return found
        path = Path(found).absolute()
        if not path.is_dir():
            key = "data.shards" if data.shards else "data.source" if told else "the drawn images"
            raise NoAdvice(
                f"{key}: no folder {str(path)!r}: be in the folder where the run was started"
            )
        return str(path)

    def _again(self, output: Path) -> str:
        """How to measure once more, with everything that is advised."""
        changes = next((e.config for e in self.entries if e.setting == "together"), {})
        loop = any(key.startswith("training.") for key in changes)
        pairs: dict[str, Any] = {"data.shards": str(output)}
        pairs |= {"disk": "null", "object_store": "null"}
        if loop:
            pairs["loaders"] = "[]"
        pairs |= {key: _plain(value) for key, value in changes.items() if not key.endswith(".data")}
        pairs |= {key: _form(value) for key, value in changes.items() if key.endswith(".data")}
        told = " ".join(f"--set {shlex.quote(f'{key}={value}')}" for key, value in pairs.items())
        return f"iobench run {shlex.quote(str(self.folder / CONFIG))} {told}"


def advise_saved(folder: Path, group: str | None = None) -> Advised:
    """The advice of a run, for the training loop that is called ``group``, else the leading one.

    Raises:
        ResultError, SchemaTooNew: there is no run that can be read.
        NoAdvice: no training loop over data is called so.
    """
    result = read(folder)
    model = whatif(result.trials, result.environment)
    entries = advise(result, model, group)
    if group is not None and not entries:
        named = dict.fromkeys(
            str(t.params.get("group")) for t in result.trials if t.kind == "train"
        )
        there = f"; there are {', '.join(named)}" if named else ""
        raise NoAdvice(f"no training loop over data is called {group!r}{there}")
    return Advised(folder, result, entries, model)


def _plain(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _form(value: Any) -> str:
    """Shards that are given are called ``shards``, whatever they were called when made."""
    form, at, place = str(value).partition("@")
    return f"{form.partition('-')[0].replace('originals', 'shards')}{at}{place}"


def _write(file: Path, text: str, output: Path) -> None:
    try:
        if file.exists():
            if file.read_text(errors="replace") != text:
                raise ConfigError(f"{file} is there already, with another content: name a new file")
            return
        if output.exists():
            raise ConfigError(
                f"{output} is there already, where the shards were to go: name another file"
            )
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror}") from None
