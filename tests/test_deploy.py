"""The files of deploy/: by schema, by Ray's own checks, by rules; and that they agree with each other and with us."""

from __future__ import annotations

import importlib.metadata
import json
import re
import runpy
import shlex
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from search import bench
from search.game_files import game_names

REPOSITORY = Path(__file__).parents[1]
DEPLOY = REPOSITORY / "deploy"
TABLE_SIZE = runpy.run_path(str(DEPLOY / "table_size.py"))
MACHINE_MB, MACHINE_WORKERS = 16 * 1024, 8
"""What the examples are computed for."""


def read_yaml(name: str) -> Any:
    return yaml.safe_load((DEPLOY / name).read_text())


# Kubernetes: the fields that we use, as the definitions of KubeRay 1.7 (ray.io/v1) and of Kubernetes have them.


def fields(required: str = "", **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


def list_of(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": 1}


STRING, COUNT, FLAG = {"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "boolean"}
NAME = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"}
QUANTITY = {"type": "string", "pattern": r"^\d+(m|Ki|Mi|Gi|Ti)?$"}
LABELS = {"type": "object", "additionalProperties": STRING}
MATCHES = list_of(fields("key operator", key=STRING, operator={"enum": ["In", "NotIn", "Exists", "DoesNotExist"]}))
SELECTOR = fields(matchLabels=LABELS, matchExpressions=MATCHES)
RESOURCES = fields(cpu=QUANTITY, memory=QUANTITY)
CONTAINER = fields(
    "name image securityContext resources volumeMounts",
    name=NAME,
    image={"type": "string", "pattern": r"^[\w./-]+:(?!latest$)[\w.-]+$"},
    securityContext=fields(
        "allowPrivilegeEscalation capabilities",
        allowPrivilegeEscalation={"const": False},
        capabilities=fields("drop", drop={"const": ["ALL"]}),
    ),
    resources=fields("requests limits", requests=RESOURCES | {"required": ["cpu", "memory"]}, limits=RESOURCES),
    ports=list_of(fields("containerPort name", containerPort={"type": "integer"}, name=NAME)),
    volumeMounts=list_of(fields("name mountPath", name=NAME, mountPath=STRING)),
)
ANTI_AFFINITY = list_of(fields("topologyKey labelSelector", topologyKey=STRING, labelSelector=SELECTOR))
POD = fields(
    "spec",
    metadata=fields(labels=LABELS),
    spec=fields(
        "automountServiceAccountToken securityContext containers volumes",
        automountServiceAccountToken={"const": False},
        securityContext=fields(
            "runAsNonRoot runAsUser seccompProfile",
            runAsNonRoot={"const": True},
            runAsUser={"type": "integer", "minimum": 1},
            fsGroup={"type": "integer", "minimum": 1},
            seccompProfile=fields("type", type={"const": "RuntimeDefault"}),
        ),
        affinity=fields(podAntiAffinity=fields(requiredDuringSchedulingIgnoredDuringExecution=ANTI_AFFINITY)),
        containers=list_of(CONTAINER),
        volumes=list_of(
            fields(
                "name emptyDir", name=NAME, emptyDir=fields("medium", medium={"const": "Memory"}, sizeLimit=QUANTITY)
            )
        ),
    ),
)
START = {"type": "object", "additionalProperties": STRING, "required": ["num-cpus", "object-store-memory"]}
CLUSTER = fields(
    "rayVersion authOptions headGroupSpec workerGroupSpecs",
    rayVersion={"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
    authOptions=fields("mode", mode={"const": "token"}),
    headGroupSpec=fields("rayStartParams template", rayStartParams=START, template=POD),
    workerGroupSpecs=list_of(
        fields(
            "groupName replicas minReplicas maxReplicas rayStartParams template",
            groupName=NAME,
            replicas=COUNT,
            minReplicas=COUNT,
            maxReplicas=COUNT,
            rayStartParams=START,
            template=POD,
        )
    ),
)


def resource(version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return fields(
        "apiVersion kind metadata spec",
        apiVersion={"const": version},
        kind={"const": kind},
        metadata=fields("name", name=NAME),
        spec=spec,
    )


PEERS = list_of(fields(podSelector=SELECTOR, namespaceSelector=SELECTOR))
PORTS = list_of(fields("protocol port", protocol={"const": "TCP"}, port={"type": "integer"}))
SCHEMAS = {
    "kuberay/cluster.yaml": resource("ray.io/v1", "RayCluster", CLUSTER),
    "kuberay/job.yaml": resource(
        "ray.io/v1",
        "RayJob",
        fields(
            "submissionMode entrypoint backoffLimit activeDeadlineSeconds ttlSecondsAfterFinished rayClusterSpec",
            submissionMode={"enum": ["K8sJobMode", "HTTPMode", "InteractiveMode"]},
            entrypoint=STRING,
            entrypointNumCpus={"type": "number"},
            backoffLimit=COUNT,
            activeDeadlineSeconds=COUNT | {"minimum": 1},
            shutdownAfterJobFinishes=FLAG,
            ttlSecondsAfterFinished=COUNT,
            rayClusterSpec=CLUSTER,
        ),
    ),
    "kuberay/network-policy.yaml": resource(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        fields(
            "podSelector policyTypes ingress",
            podSelector=SELECTOR,
            policyTypes={"const": ["Ingress"]},
            ingress=list_of(fields("from", **{"from": PEERS}, ports=PORTS)),
        ),
    ),
}


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_kubernetes_files_have_the_fields_of_their_kinds(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])
    jsonschema.validate(read_yaml(name), SCHEMAS[name])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("apiVersion",), "ray.io/v1alpha1"),
        (("spec", "authOptions", "mode"), "disabled"),
        (("spec", "headGroupSpec", "rayStartParams", "num-cpus"), 0),
        (("spec", "headGroupSpec", "template", "spec", "securityContext", "runAsUser"), 0),
        (("spec", "headGroupSpec", "replicas"), 1),
        (("spec", "workerGroupSpecs"), []),
    ],
)
def test_the_schema_refuses_what_is_wrong(path: tuple[str, ...], value: Any) -> None:
    document = read_yaml("kuberay/cluster.yaml")
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SCHEMAS["kuberay/cluster.yaml"])


def test_the_job_brings_the_same_cluster() -> None:
    assert read_yaml("kuberay/job.yaml")["spec"]["rayClusterSpec"] == read_yaml("kuberay/cluster.yaml")["spec"]


def test_the_pods_have_memory_and_cores_for_their_workers() -> None:
    spec = read_yaml("kuberay/cluster.yaml")["spec"]
    assert spec["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    (group,) = spec["workerGroupSpecs"]
    (container,) = group["template"]["spec"]["containers"]
    requests, limits = container["resources"]["requests"], container["resources"]["limits"]
    assert group["rayStartParams"]["num-cpus"] == requests["cpu"] == str(MACHINE_WORKERS)
    assert requests["memory"] == limits["memory"] == f"{MACHINE_MB // 1024}Gi"
    for pod in (spec["headGroupSpec"]["template"], group["template"]):
        mounts = {mount["mountPath"]: mount["name"] for mount in pod["spec"]["containers"][0]["volumeMounts"]}
        assert mounts["/dev/shm"] in [volume["name"] for volume in pod["spec"]["volumes"]]
    (shared,) = group["template"]["spec"]["volumes"]
    assert shared["emptyDir"]["sizeLimit"] == f"{sizes().shared_memory_mb}Mi"
    labels = group["template"]["metadata"]["labels"]
    (rule,) = group["template"]["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert rule == {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}


def test_only_the_dashboard_is_open_to_others() -> None:
    first, *others = read_yaml("kuberay/network-policy.yaml")["spec"]["ingress"]
    assert first == {"from": [{"podSelector": read_yaml("kuberay/network-policy.yaml")["spec"]["podSelector"]}]}
    assert [[port["port"] for port in rule["ports"]] for rule in others] == [[8265], [8265]]


# The cluster launcher: what `ray up` itself checks.


@pytest.mark.parametrize("name", ["own-machines", "aws"])
def test_ray_up_takes_the_launchers_file(name: str) -> None:
    util = pytest.importorskip("ray.autoscaler._private.util")
    document = read_yaml(f"launcher/{name}.yaml")
    prepared = util.prepare_config(document)
    util.validate_config(prepared)
    assert prepared["max_workers"] == max(2, document["max_workers"])
    options = [*document["docker"]["run_options"], *document["docker"].get("worker_run_options", [])]
    assert f"--shm-size={sizes().shared_memory_mb}m" in options
    assert "--ulimit nofile=65536:65536" in options
    assert "--env RAY_AUTH_MODE=token" in options
    assert list(document["file_mounts"]) == ["/home/rootsplit/.ray/auth_token"]
    for command in (*document["head_start_ray_commands"], *document["worker_start_ray_commands"]):
        assert "dashboard-host" not in command
    assert "--num-cpus=0" in document["head_start_ray_commands"][-1]


def test_ray_up_refuses_a_file_with_a_wrong_field() -> None:
    util = pytest.importorskip("ray.autoscaler._private.util")
    document = read_yaml("launcher/aws.yaml") | {"dokcer": {}}
    with pytest.raises(jsonschema.ValidationError, match="dokcer"):
        util.validate_config(util.prepare_config(document))


# Docker.


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile, continued lines joined, comments left out."""
    lines = [line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def test_the_dockerfile_keeps_the_rules() -> None:
    steps = instructions()
    known = {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "SHELL", "ENV", "USER", "CMD"}
    assert {word for word, _ in steps} <= known, "no ADD, which fetches; no EXPOSE, which invites"
    bases = [rest.split()[0] for word, rest in steps if word == "FROM"]
    assert all(re.fullmatch(r"python:\$\{PYTHON_VERSION\}-slim-\w+", base) for base in bases), "pinned and slim"
    users = [rest for word, rest in steps if word == "USER"]
    assert users[-1].isdigit()
    assert int(users[-1]) > 0
    assert not any(word == "COPY" for word, _ in steps[steps.index(("USER", users[-1])) :])
    assert all(rest.startswith("/") for word, rest in steps if word == "WORKDIR")
    assert isinstance(json.loads(dict(steps)["CMD"]), list), "the form without a shell: signals reach the program"
    shell = json.loads(next(rest for word, rest in steps if word == "SHELL"))
    assert shell[:3] == ["/bin/bash", "-euo", "pipefail"]
    for run in (rest for word, rest in steps if word == "RUN"):
        words = shlex.split(run)
        assert "sudo" not in words
        assert "curl" not in words
        if "apt-get" in words:
            assert "--no-install-recommends" in words
            assert "rm -rf /var/lib/apt/lists/*" in run
        if any(word.endswith("pip") for word in words):
            assert "--no-cache-dir" in words
            assert "deploy/constraints.txt" in words


def test_the_image_holds_the_package_and_nothing_else_of_the_checkout() -> None:
    lines = (REPOSITORY / ".dockerignore").read_text().split()
    assert lines[0] == "*"
    admitted = {line[1:] for line in lines if line.startswith("!")}
    assert all((REPOSITORY / name).exists() for name in admitted)
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    packages = {name.partition(".")[0] for name in project["tool"]["setuptools"]["packages"]}
    assert {*packages, "pyproject.toml", "README.md", "LICENSE", "deploy/constraints.txt"} == admitted


def test_the_image_compiles_every_games_kernel() -> None:
    assert ("RUN", "rootsplit bench") in instructions()
    assert sorted({name for name, _, _ in bench._POSITIONS}) == game_names()


def test_all_files_name_the_versions_that_were_tested_together() -> None:
    pinned = dict(line.split("==") for line in (DEPLOY / "constraints.txt").read_text().split() if "==" in line)
    assert read_yaml("kuberay/cluster.yaml")["spec"]["rayVersion"] == pinned["ray"]
    version = importlib.metadata.version("rootsplit")
    files = [path for path in DEPLOY.rglob("*") if path.suffix in (".yaml", ".md")]
    tags = {tag for path in files for tag in re.findall(r"rootsplit:(\d[\w.]*\w)", path.read_text())}
    assert tags == {version}


def test_compose_publishes_nothing_and_wants_a_token() -> None:
    document = read_yaml("docker-compose.yaml")
    services = document["services"]
    assert sorted(services) == ["head", "machine"]
    for service in services.values():
        assert "ports" not in service
        assert service["environment"]["RAY_AUTH_MODE"] == "token"
        assert service["environment"]["RAY_AUTH_TOKEN"].startswith("${RAY_AUTH_TOKEN:?")
        assert service["shm_size"] == "1gb"
        assert service["cap_drop"] == ["ALL"]
    assert services["machine"]["deploy"]["replicas"] == 2


# Sizes.


def sizes() -> Any:
    return TABLE_SIZE["sizes"](MACHINE_MB, MACHINE_WORKERS)


@pytest.mark.parametrize(("memory_mb", "workers"), [(2048, 1), (4096, 8), (MACHINE_MB, 8), (1 << 20, 64)])
def test_a_table_leaves_room_for_workers_and_ray(memory_mb: int, workers: int) -> None:
    table_mb, shared_memory_mb = TABLE_SIZE["sizes"](memory_mb, workers)
    assert 0 < table_mb <= 0.6 * memory_mb
    assert shared_memory_mb > table_mb + TABLE_SIZE["OBJECT_STORE_MB"]
    assert shared_memory_mb + workers * TABLE_SIZE["WORKER_MB"] + TABLE_SIZE["RAY_MB"] <= memory_mb


def test_a_machine_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="leave no table"):
        TABLE_SIZE["sizes"](2048, 8)


def test_the_readme_shows_what_the_calculator_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    readme = (DEPLOY / "README.md").read_text()
    command, printed = re.findall(r"\$ python deploy/table_size\.py (.*)\n((?:.+\n)+)```", readme)[0]
    monkeypatch.setattr("sys.argv", ["table_size.py", *command.split()])
    TABLE_SIZE["main"]()
    assert capsys.readouterr().out == printed
    assert f"--table {sizes().table_mb} " in read_yaml("kuberay/job.yaml")["spec"]["entrypoint"]
