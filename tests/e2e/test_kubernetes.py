"""The manifests of docs/kubernetes.md have valid fields and commands, and make every part."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest
import typer
import yaml
from distributed.cli.dask_scheduler import main as dask_scheduler
from distributed.cli.dask_worker import main as dask_worker

from dataprep.errors import ConfigError
from dataprep.job.parts import Part
from tests.commandline import comparable, in_process, objects
from tests.e2e.test_docs import APPS, BLOCKS

ROOT = Path(__file__).parents[2]
YAML_BLOCKS = [
    yaml.safe_load(block.text)
    for block in BLOCKS
    if block.page.stem == "kubernetes" and block.language == "yaml"
]
MANIFESTS = {manifest["metadata"]["name"]: manifest for manifest in YAML_BLOCKS}
JOBS = {name: job for name, job in MANIFESTS.items() if job["kind"] == "Job"}
CLUSTER = MANIFESTS["dataprep"]
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
QUANTITY = re.compile(r"[0-9]+(m|Ki|Mi|Gi|Ti)?")


def pods(manifest: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The pod specifications of a manifest."""
    spec = manifest["spec"]
    if manifest["kind"] == "Job":
        yield spec["template"]["spec"]
    else:
        yield from (spec[component]["spec"] for component in ("worker", "scheduler"))


def containers(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The containers of all pods of a manifest."""
    return [container for pod in pods(manifest) for container in pod["containers"]]


def variables(container: Mapping[str, Any]) -> dict[str, str]:
    """The environment of a container."""
    return {entry["name"]: entry["value"] for entry in container.get("env", [])}


def test_the_page_has_an_indexed_job_and_a_cluster() -> None:
    """The page has an indexed job, a cluster, and a job for each command before or after them."""
    assert set(JOBS) == {"dataprep-shard", "dataprep-finalize", "dataprep-driver"}
    assert CLUSTER["kind"] == "DaskCluster"
    assert CLUSTER["apiVersion"] == "kubernetes.dask.org/v1"


@pytest.mark.parametrize("name", MANIFESTS)
def test_containers_have_the_fields_that_kubernetes_requires(name: str) -> None:
    """Containers have names, an image, a command, texts in the environment, and resources."""
    assert NAME.fullmatch(name)
    for container in containers(MANIFESTS[name]):
        assert NAME.fullmatch(container["name"])
        assert container["image"]
        command = container.get("command") or container["args"]
        assert command
        assert all(isinstance(word, str) for word in command), command
        for entry in container.get("env", []):
            assert isinstance(entry["value"], str), entry
        for amounts in container.get("resources", {}).values():
            assert set(amounts) == {"cpu", "memory"}
            assert all(QUANTITY.fullmatch(amount) for amount in amounts.values()), amounts


@pytest.mark.parametrize("name", JOBS)
def test_jobs_have_the_fields_of_batch_v1(name: str) -> None:
    """A job with a failure policy restarts no pod in place, and does not repeat exit code 2."""
    job = JOBS[name]
    assert job["apiVersion"] == "batch/v1"
    spec = job["spec"]
    (pod,) = pods(job)
    assert pod["restartPolicy"] == "Never"
    names = {container["name"] for container in pod["containers"]}
    (container,) = pod["containers"]
    assert container["resources"]["limits"].keys() == {"cpu", "memory"}
    codes: list[int] = []
    for rule in spec["podFailurePolicy"]["rules"]:
        assert set(rule) in ({"action", "onExitCodes"}, {"action", "onPodConditions"})
        if "onExitCodes" in rule:
            assert rule["action"] == "FailJob"
            assert rule["onExitCodes"]["operator"] == "In"
            assert rule["onExitCodes"]["containerName"] in names
            codes += rule["onExitCodes"]["values"]
        else:
            assert rule["action"] == "Ignore"
            assert rule["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]
    assert codes == [ConfigError.exit_code]


def test_the_indexed_job_makes_every_part_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables give the part numbers from 0 to the completions that ``finalize`` expects."""
    spec = JOBS["dataprep-shard"]["spec"]
    assert spec["completionMode"] == "Indexed"
    assert spec["parallelism"] <= spec["completions"]
    assert spec["backoffLimitPerIndex"] > 0
    (container,) = containers(JOBS["dataprep-shard"])
    for name, value in variables(container).items():
        monkeypatch.setenv(name, value)
    parts = []
    for index in range(spec["completions"]):
        monkeypatch.setenv("JOB_COMPLETION_INDEX", str(index))
        parts.append(Part.parse("auto"))
    assert parts == [(number, spec["completions"]) for number in range(spec["completions"])]
    command = containers(JOBS["dataprep-finalize"])[0]["command"]
    assert command[command.index("--parts") + 1] == str(spec["completions"])


@pytest.mark.parametrize("name", MANIFESTS)
def test_commands_are_accepted_by_their_parsers(name: str) -> None:
    """The parsers of ``dataprep`` and of Dask accept each command with its options and values."""
    for container in containers(MANIFESTS[name]):
        program, command, *arguments = container.get("command") or container["args"]
        if program == "dask":
            parser: click.Command = {"worker": dask_worker, "scheduler": dask_scheduler}[command]
        else:
            parser = typer.main.get_command(APPS[program]).commands[command]  # type: ignore[attr-defined]
        parser.make_context(command, list(arguments))


def test_there_is_one_image_whose_name_is_that_of_the_dockerfile() -> None:
    """The page builds the one image that all manifests use, so that all libraries are equal."""
    images = set()
    for manifest in MANIFESTS.values():
        images |= {container["image"] for container in containers(manifest)}
    (image,) = images
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    assert f"-t {image} --push" in page
    built = re.search(r"docker build -t (\S+) ", (ROOT / "Dockerfile").read_text())
    assert built is not None
    assert image.rpartition("/")[2].partition(":")[0] == built[1]


def test_the_driver_finds_the_scheduler() -> None:
    """The driver uses the name of the operator's service, and its ports lead to the container."""
    scheduler = CLUSTER["spec"]["scheduler"]
    service, (container,) = scheduler["service"], scheduler["spec"]["containers"]
    assert service["selector"] == {
        "dask.org/cluster-name": CLUSTER["metadata"]["name"],
        "dask.org/component": "scheduler",
    }
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert {port["name"]: port["port"] for port in service["ports"]} == ports
    assert all(port["targetPort"] in ports for port in service["ports"])
    assert container["readinessProbe"]["httpGet"]["port"] in ports
    # The names of ports that the operator looks for.
    assert set(ports) == {"tcp-comm", "http-dashboard"}
    address = f"tcp://{CLUSTER['metadata']['name']}-scheduler:{ports['tcp-comm']}"
    command = containers(JOBS["dataprep-driver"])[0]["command"]
    assert command[command.index("--scheduler") + 1] == address


@pytest.mark.parametrize(
    "command",
    [
        ("shard", "--source", "photos", "--output", "out", "--part", "auto"),
        ("stage", "out", "copy", "--host", "auto"),
    ],
)
def test_without_the_number_of_parts_nothing_is_written(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the number of parts the exit code is 2, and the error names the variable."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "3")
    done = in_process(*command, code=2)
    assert "set JOB_COMPLETIONS to spec.completions" in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_pods_make_the_bytes_of_one_run(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands of the manifests, run as three parts, make the output of a single run."""
    config, output, alone = tmp_path / "job.yaml", tmp_path / "out", tmp_path / "alone"
    values = {"source": str(tree), "output": str(output), "shard_size": "1.2MB"}
    config.write_text(yaml.safe_dump({**values, "dask": {"workers": 1, "processes": False}}))
    replacements = {
        "s3://bucket/job.yaml": str(config),
        "s3://bucket/imagenet": str(output),
        "32": "3",
    }

    def local_command(name: str) -> list[str]:
        (_, *arguments) = containers(JOBS[name])[0]["command"]
        return [replacements.get(argument, argument) for argument in arguments]

    monkeypatch.setenv("JOB_COMPLETIONS", "3")
    for index in ("2", "0", "1"):
        monkeypatch.setenv("JOB_COMPLETION_INDEX", index)
        in_process(*local_command("dataprep-shard"), code=0)
    in_process(*local_command("dataprep-finalize"), code=0)
    in_process("shard", str(config), "--output", str(alone), code=0)
    assert comparable(objects(output)) == comparable(objects(alone))
