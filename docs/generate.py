"""Write the pages that the code knows best: ``python docs/generate.py``.

Config keys (types, bounds and defaults from the JSON schema of the models, meanings from the
docstrings of their fields), schemas for editors, commands, findings, and the terms of the report.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel

from dataprep.cli.main import app as dataprep
from dataprep.config.files import editor_schema
from dataprep.config.shard_config import ShardConfig
from dataprep.stores import StoreOptions
from iobench.analysis.finding_rules import RULES
from iobench.cli.main import app as iobench
from iobench.config.benchmark import BenchConfig
from iobench.consumers.accelerators import ACCELERATORS, Accelerator
from iobench.report.glossary import COMMAND_TERMS, DEFINITIONS
from iobench.results.numbers import exact_percent, exact_size, precise_number
from iobench.results.wording import model_words

ROOT = Path(__file__).parents[1]
_SHARD = """\
# Keys of a sharding config

For people who write a config for `dataprep shard`: each key, what it takes, and its default.
Only `source` and `output` are required. Options and `--set image.quality=90` override the YAML
file; `--print-config` prints all defaults.
"""
_BENCH = """\
# Keys of a benchmark config

For people who write a config for `iobench run`: each key, what it takes, and its default.
A section that is left out is not measured. "several" is one value or a list; sizes are `64MiB`,
`8MB` or bytes. `--set data.images=5000` overrides a key, and `--set training.0.steps=50` a key of
the first entry in a list. `--print-config` prints all defaults.

Editors complete and check the keys if the config begins with
`# yaml-language-server: $schema=schema.json` and that file is beside it: `iobench schema` prints
it, and `dataprep init` copies it with the examples.

## The ten keys that people set

`data.source`, `data.shards`, `repeats`, `loaders.workers`, `training.consumer`, `training.model`,
`training.batch_size`, `training.loader`, `training.workers`, `training.inputs`.
"""
_STORE = "These keys are in the [sharding config](shard-config.md#store-source_store).\n"
_MADE_BY = "\nMade by `python docs/generate.py`.\n"
_COMMANDS = """\
# Commands

For people who look up a command and its options; `COMMAND --help` explains them. `--json` prints
one JSON object. Exit codes: 0 the command succeeded; 1 it ran, and the result is not acceptable;
2 the request was wrong and nothing was written, no trial could run, or runs cannot be compared; 130
it was interrupted, and can be resumed.
"""
_GLOSSARY = """\
# Glossary

For readers of `--help` and of iobench's report: every term in them, with its definition. The report
has its own terms at its end, too.
"""
_ACCELERATORS = """\
# Accelerators

For people who choose a device to emulate, or to plan a cluster with. `training.N.preset` in a
config and `iobench scale --device` take the names of the table. Choose the kind of rate by your
question:

- **Is the input fast enough for real training?** Choose a tuned training step (`A100`, `H100`).
- **How does this compare with results of MLPerf Storage?** Choose its emulation (`H100-mlperf`). It
  pauses for each batch for longer than a tuned training step takes, so that it asks for fewer
  images/s.

A rate belongs to one model, and a preset also sets `model`. Use samples like those of the model:
MLPerf Storage's RetinaNet reads JPEG files of 323 kB on average.

The names that end in `-mlperf` have a pass mark: the lowest utilisation of the accelerator with
which a run of MLPerf Storage passes. The report also lists the other conditions of MLPerf Storage:
batches of the workload's size, data of 5 times the memory of the hosts, 500 steps in an epoch, and
a run to warm up before five runs that count. Only `mlpstorage`, the benchmark's own program, gives
results of MLPerf Storage. All other names have no pass mark.

The price of an accelerator is the price of an Amazon EC2 instance divided by its number of
accelerators. `iobench scale --device` multiplies it by the number of devices.

To add an accelerator, add it to `iobench/consumers/accelerators.py`. This is the only file that
lists accelerators.
"""
_RULES = "<!-- rules -->\n"


def files() -> dict[Path, str]:
    """Path to content of every generated file."""
    findings = ROOT / "docs/diagnosis.md"
    return {
        findings: _with_rules(findings.read_text()),
        ROOT / "docs/commands.md": commands(),
        ROOT / "docs/glossary.md": glossary(),
        ROOT / "docs/accelerators.md": accelerators(),
        ROOT / "docs/shard-config.md": page(_SHARD, ShardConfig, "The job"),
        ROOT / "docs/benchmark-config.md": page(_BENCH, BenchConfig, "The run"),
        ROOT / "configs/shard/schema.json": editor_schema(
            ShardConfig, "A sharding config of dataprep"
        ),
        ROOT / "configs/bench/schema.json": editor_schema(
            BenchConfig, "A benchmark config of iobench"
        ),
    }


def commands() -> str:
    """Each command with its purpose and the names of its options, as Markdown."""
    lines = [_COMMANDS + _MADE_BY]
    for program in (dataprep, iobench):
        group: Any = typer.main.get_command(program)
        lines += [f"## {group.name}\n", "| command | does | options |", "| --- | --- | --- |"]
        lines += [_command(name, one) for name, one in group.commands.items() if not one.hidden]
        lines.append("")
    return "\n".join(lines)


def _command(name: str, command: Any) -> str:
    names = [one.opts[0] for one in command.params if one.param_type_name == "option"]
    if hasattr(command, "commands"):
        names = [*command.commands]
    options = " ".join(f"`{one}`" for one in names if one != "--help")
    return f"| `{name}` | {command.help.splitlines()[0]} | {options} |"


def glossary() -> str:
    """The terms of the commands and of the report, as Markdown."""
    lines = [_GLOSSARY + _MADE_BY, "## Terms of the commands\n"]
    lines += [f"**{term}**\n: {meaning}\n" for term, meaning in COMMAND_TERMS.items()]
    lines.append("## Terms of the report\n")
    lines += [f"**{term}**\n: {meaning}\n" for term, meaning in DEFINITIONS.items()]
    return "\n".join(lines)


def accelerators() -> str:
    """The rates of all accelerators, and their prices, as Markdown."""
    lines = [_ACCELERATORS + _MADE_BY, "## Rates\n"]
    lines += ["| name | model | images/s | meaning of the rate | pass mark | source |"]
    lines += ["| --- | --- | --- | --- | --- | --- |"]
    for accelerator in ACCELERATORS:
        for rate in accelerator.rates:
            mark = exact_percent(rate.workload.pass_mark) if rate.workload is not None else ""
            cells = [f"`{rate.name}`", model_words(rate.model), precise_number(rate.samples_per_s)]
            lines.append(f"| {' | '.join([*cells, rate.work_kind.value, mark, rate.source])} |")
    lines += ["\n## Prices\n", "| accelerator | $ an hour | instance | source |"]
    lines += ["| --- | --- | --- | --- |", *(_price(one) for one in ACCELERATORS)]
    return "\n".join(lines) + "\n"


def _price(accelerator: Accelerator) -> str:
    rental = accelerator.rental
    if rental is None:
        return f"| {accelerator.name} | not known |  |  |"
    usd = f"{rental.usd_per_accelerator_h:.2f}"
    return f"| {accelerator.name} | {usd} | {rental.basis} | [price list]({rental.source}) |"


def _with_rules(text: str) -> str:
    """The page of findings with its table made anew."""
    head = text.partition(_RULES)[0]
    rows = ["| code | finding | when |", "| --- | --- | --- |"]
    rows += [f"| `{rule.code}` | {rule.title} | {rule.when} |" for rule in RULES.values()]
    return f"{head}{_RULES}" + "\n".join(rows) + "\n"


def page(head: str, model: type[BaseModel], title: str) -> str:
    """A table of all keys of each model, as Markdown."""
    schema = model.model_json_schema()
    models = {model.__name__: schema, **schema["$defs"]}
    locations: dict[str, list[str]] = {}
    _find(models, model.__name__, "", locations)
    lines = [head + _MADE_BY]
    for name, found in locations.items():
        is_elsewhere = model is BenchConfig and name == StoreOptions.__name__
        table = [_STORE] if is_elsewhere else _table(models[name])
        lines += [f"## {', '.join(found).strip() or title}\n", *table]
    return "\n".join(lines)


def _find(models: Any, name: str, location: str, locations: dict[str, list[str]]) -> None:
    """Collect the dotted locations at which each model is used."""
    locations.setdefault(name, []).append(location)
    for key, schema in models[name]["properties"].items():
        for inner in re.findall(r"#/\$defs/(\w+)", json.dumps(schema)):
            _find(models, inner, f"{location}.{key}".lstrip("."), locations)


def _table(model: Any) -> Iterator[str]:
    yield "| key | takes | default | meaning |"
    yield "| --- | --- | --- | --- |"
    for key, schema in model["properties"].items():
        default = "required" if key in model.get("required", ()) else _default(key, schema)
        meaning = " ".join(schema["description"].replace("``", "`").split())
        yield f"| `{key}` | {_takes(key, schema)} | {default} | {meaning} |"
    yield ""


def _takes(key: str, schema: Any) -> str:
    if "anyOf" in schema:
        return _one_of(key, schema["anyOf"])
    if "$ref" in schema:
        return "keys below"
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return ", ".join(f"`{_as_yaml(value)}`" for value in values)
    kind = schema.get("type")
    if kind == "array":
        return _list(key, schema)
    if kind == "object":
        values = schema["additionalProperties"]
        return f"names, each with {_takes(key, values if isinstance(values, dict) else {})}"
    if _is_size(key):
        return "size"
    known = {"boolean": "`true`, `false`", "string": "text", None: "anything"}
    return known.get(kind) or _number(schema)


def _one_of(key: str, schemas: list[Any]) -> str:
    """The kinds of value; a list alone where it or one entry of it is taken."""
    kinds = [one for one in schemas if one.get("type") != "null"]
    lists = [one for one in kinds if one.get("items") in kinds]
    return " or ".join(dict.fromkeys(_takes(key, one) for one in lists or kinds))


def _list(key: str, schema: Any) -> str:
    if "prefixItems" in schema:
        kinds = [_takes(key, one) for one in schema["prefixItems"]]
        return f"{len(kinds)} of: {kinds[0]}" if len(set(kinds)) == 1 else " and ".join(kinds)
    inner = schema["items"]
    return "list of keys" if "$ref" in inner else f"several: {_takes(key, inner)}"


def _number(schema: Any) -> str:
    what = "integer" if schema["type"] == "integer" else "number"
    above, low = schema.get("exclusiveMinimum"), schema.get("minimum", -1e9)
    high = schema.get("maximum", 1e9)
    if above is not None:
        return f"{what} above {above:,}"
    if low < -1e6:  # a bound that only keeps nonsense out
        return what
    return f"{what}, {low:,} to {high:,}" if high <= 1e6 else f"{what} from {low:,}"


def _default(key: str, schema: Any) -> str:
    value = schema.get("default")
    shown = []
    for one in value if isinstance(value, list) else [value]:
        if one in (None, "") or isinstance(one, dict):
            continue
        if _is_size(key):
            one = exact_size(int(one)).replace(" ", "")
        shown.append(f"`{_as_yaml(one)}`")
    return ", ".join(shown)


def _as_yaml(value: Any) -> str:
    """A value as it is written in a config."""
    return value if isinstance(value, str) else json.dumps(value)


def _is_size(key: str) -> bool:
    return key.endswith("_bytes") or key in ("shard_size", "memory_limit")


if __name__ == "__main__":
    for path, content in files().items():
        path.write_text(content)
        sys.stdout.write(f"{path}\n")
