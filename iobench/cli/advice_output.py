"""Advice from a saved run, as text, as JSON, or as a config for ``dataprep shard``."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import yaml
from pydantic import ValidationError

from dataprep.errors import ConfigError
from dataprep.formats import DEFAULT_FORMAT
from dataprep.name_encoding import escape
from iobench.analysis.analyse import Analysis, analyse
from iobench.analysis.gain_words import how_words, prediction_accuracy_words
from iobench.analysis.recommendations import Recommendation
from iobench.analysis.repeats import usable_cpus
from iobench.data.existing import expand_home
from iobench.data.settings import DataSettings
from iobench.errors import NoAdvice
from iobench.loaders.capabilities import capabilities_of
from iobench.report.front_page import (
    gain_or_unknown,
    no_changes_words,
    no_effect_words,
    settings_words,
)
from iobench.report.page import from_template
from iobench.runner.run_folder import CONFIG, read

_SHARD_SETTINGS = ("sharding", "resize", "shard_size")
"""Settings that ``dataprep shard`` can change."""
_MEASURE = "iobench run configs/bench/advise.yaml (dataprep init copies it)"
"""The command that measures everything that advice needs."""
_WRITE_OPTIONS = {"storage_class", "sse", "sse_kms_key_id"}  # not needed to read a store
_LIMIT_NAMES = {
    "decode": "decoding",
    "disk": "the disk",
    "store": "the store",
    "device": "the device",
}
"""The parts of a loop that can limit its rate after a change, in words."""


class ShardSettings(TypedDict, total=False):
    """A config for ``dataprep shard``: keys of ``dataprep.ShardConfig``, in their order in YAML."""

    source: str
    kind: str
    split: str
    output: str
    format: list[str]
    image: Mapping[str, Any]
    shard_size: Any
    seed: int
    dask: Mapping[str, int]
    source_store: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SavedAdvice:
    """The advice from a saved run, as text, as JSON and as a config.

    Attributes:
        folder: the folder of the run.
        analysis: its analysis.
    """

    folder: Path
    analysis: Analysis

    @property
    def text(self) -> str:
        """The advice for a terminal.

        Raises:
            NoAdvice: the figures are not reliable, or the run has no loop and no loader with
                settings that could change.
        """
        analysis = self.analysis
        if analysis.doubt and analysis.loop is not None:
            raise NoAdvice(
                f"the figures of the loop {analysis.loop.group!r} are not reliable "
                f"({analysis.doubt}): measure again with more images or more steps, and with no "
                "other programs running"
            )
        if analysis.situation is None:
            raise NoAdvice(
                "this run has no training loop over data and no loader that decodes: "
                f"{_MEASURE} measures both; for a watched loop, the advice is in its report.html"
            )
        confidence = ""
        if analysis.loop is not None:
            accuracy = prediction_accuracy_words(analysis.checks, analysis.loop.group)
            confidence = f"Confidence: {analysis.confidence}. {accuracy}"
        page = from_template(
            "advise.txt.j2",
            analysis=analysis,
            plain=escape,
            gain=gain_or_unknown,
            how_words=self._how_words,
            settings_words=settings_words,
            no_changes_words=no_changes_words,
            no_effect_words=no_effect_words,
            limits=_LIMIT_NAMES,
            measure=_MEASURE,
            confidence="\n".join(map(escape, _wrapped(confidence))),
        )
        return page.decode().rstrip("\n")

    def _how_words(self, change: Recommendation) -> list[str]:
        """How to make a change. Commands that measure name the config of this run."""
        config_path = shlex.quote(str(self.folder / CONFIG))
        return [
            line.replace("iobench run CONFIG ", f"iobench run {config_path} ")
            for line in how_words(change)
        ]

    @property
    def json(self) -> str:
        """The advice as one JSON object."""
        keys = ("verdict", "confidence", "recommendations", "without_effect", "not_measured")
        content = {key: self.analysis.summary[key] for key in (*keys, "predictions")}
        return json.dumps(content, allow_nan=False)

    def write_config(self, file: Path) -> str:
        """Write a config for ``dataprep shard``.

        Returns:
            The commands to run next.

        Raises:
            NoAdvice: no other shards are recommended, or the images are unknown or missing.
            ConfigError: the file has a different content, the folder of the shards exists already,
                or the file cannot be written.
        """
        recommended = self.analysis.advice.changes
        changes = [change for change in recommended if change.setting in _SHARD_SETTINGS]
        if not changes:
            names = settings_words(_SHARD_SETTINGS)
            raise NoAdvice(
                f"no change of the shards is recommended ({names}): {_MEASURE} measures them"
            )
        output = Path.cwd() / file.parent / f"{file.stem}-shards"
        text = self._shard_config(changes, self._source_uri(), str(output))
        _write(file, text, output)
        measure_again = self._command_to_measure_again(output)
        return f"dataprep shard {shlex.quote(str(file))}\n{measure_again}"

    def _shard_config(self, changes: Sequence[Recommendation], source: str, output: str) -> str:
        """The config as YAML. For each change, a comment gives the predicted gain.

        Args:
            changes: the recommended changes of the shards.
            source: the path or address of the images.
            output: the folder of the new shards.
        """
        result = self.analysis.result
        data: Mapping[str, Any] = result.config.get("data") or {}
        settings: ShardSettings = {
            "source": source,
            "kind": "records" if data.get("shards") else "imagefolder",
            "split": data.get("split", "train"),
            "output": output,
            "format": [DEFAULT_FORMAT],
        }
        comments = [
            f"Written by `iobench advise` from the run {result.name!r} of {result.started}."
        ]
        for change in changes:
            comments.append(f"{change.action}: {gain_or_unknown(change)}, {change.basis}.")
            if change.setting == "resize":
                settings["image"] = {"size": change.value, "quality": data.get("quality", 95)}
            if change.setting == "shard_size":
                settings["shard_size"] = change.value
            # A recommended loader may read another format.
            for value in change.config.values():
                record_format = capabilities_of(str(value)).record_format
                if record_format:
                    settings["format"] = [record_format]
        settings["seed"] = data.get("seed", 0)
        processors = usable_cpus(result.environment)
        if processors is not None:
            settings["dask"] = {"workers": max(1, int(processors))}
        store_options = _read_options(data.get("store") or {})
        if "://" in source and store_options:
            settings["source_store"] = store_options
        body = yaml.safe_dump(settings, sort_keys=False, allow_unicode=True, width=96)
        return _yaml_comments(comments) + body

    def _source_uri(self) -> str:
        """The absolute path or address of the images that the run read.

        Raises:
            NoAdvice: the images are unknown or missing.
        """
        try:
            data = DataSettings.model_validate(self.analysis.result.config.get("data") or {})
        except ValidationError:
            raise NoAdvice("the config of the run does not name its images") from None
        if data.shards:
            key, location = "data.shards", expand_home(data.shards)
        elif data.source:
            key, location = "data.source", expand_home(data.source)
        else:
            key = "the drawn images"
            location = str(Path(data.folder).expanduser() / data.drawn_folder)
        if "://" in location:
            return location
        path = Path(location).absolute()
        if not path.is_dir():
            raise NoAdvice(
                f"{key}: no folder {str(path)!r}: change to the folder in which the run was started"
            )
        return str(path)

    def _command_to_measure_again(self, output: Path) -> str:
        """The command that measures again with all recommended changes."""
        settings = {"data.shards": str(output), "disk": "null", "object_store": "null"}
        if self.analysis.loop is not None:
            settings["loaders"] = "[]"
        for change in self.analysis.advice.changes:
            for key, value in change.config.items():
                if key.endswith(".data"):
                    # The data in data.shards always has the name ``shards``.
                    settings[key] = "shards@disk" if key.startswith("loaders.") else "shards"
                elif key != "data.shards":
                    settings[key] = str(value)
        options = [f"--set {shlex.quote(f'{key}={text}')}" for key, text in settings.items()]
        return f"iobench run {shlex.quote(str(self.folder / CONFIG))} {' '.join(options)}"


def advise_saved(folder: Path, group: str | None = None) -> SavedAdvice:
    """The advice from a saved run.

    Args:
        folder: the folder of the run.
        group: the name of a training loop. The default is the loop of the run's verdict.

    Raises:
        ResultError, SchemaTooNew: there is no run that can be read.
        NoAdvice: no training loop over data has this name.
    """
    result = read(folder)
    analysis = analyse(result, group)
    if group is not None and analysis.loop is None:
        groups = dict.fromkeys(loop.group for loop in analyse(result).loops)
        choices = f": choose one of {', '.join(groups)}" if groups else ""
        raise NoAdvice(f"no training loop over data is called {group!r}{choices}")
    return SavedAdvice(folder, analysis)


def _read_options(store: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options of a store that are needed to read from it.

    Args:
        store: keys of ``StoreOptions``.
    """
    return {
        key: value
        for key, value in store.items()
        if value is not None and key not in _WRITE_OPTIONS
    }


def _yaml_comments(sentences: Sequence[str]) -> str:
    """The sentences as comment lines of YAML, wrapped at 96 characters."""
    lines = []
    for sentence in sentences:
        lines += [f"# {line}\n" for line in _wrapped(_printable(sentence))]
    return "".join(lines)


def _wrapped(text: str) -> list[str]:
    """The text in lines of at most 96 characters, where its words allow that."""
    return textwrap.wrap(text, 96, break_long_words=False, break_on_hyphens=False)


def _printable(text: str) -> str:
    """Replace unprintable characters, because a line feed in a name would end a comment."""
    return "".join(char if char.isprintable() else " " for char in text)


def _write(file: Path, text: str, output: Path) -> None:
    """Write a config. A file that already has this content is not written again.

    Args:
        file: the file of the config.
        text: the content.
        output: the folder of the shards, which must not exist yet.

    Raises:
        ConfigError: the file has a different content, ``output`` exists, or the file cannot be
            written.
    """
    try:
        if file.exists():
            if file.read_text(errors="replace") != text:
                raise ConfigError(f"{file} exists with another content: choose another file")
            return
        if output.exists():
            raise ConfigError(
                f"{output} exists, but the shards would be written there: choose another file"
            )
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror}") from None
