"""The files for Kubernetes and containers, as far as they can be checked without a cluster: form, keys, and names."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
HUB = ROOT / "hub"

# From the configuration reference of Zero to JupyterHub 4.
CHART_KEYS = {
    "": {"hub", "proxy", "singleuser", "cull", "ingress", "scheduling", "prePuller"},
    "hub": {"config", "db", "extraConfig", "extraEnv", "resources", "services"},
    "proxy": {"https", "service", "secretToken"},
    "proxy.https": {"enabled", "hosts", "letsencrypt", "type"},
    "singleuser": {
        "image", "defaultUrl", "extraEnv", "memory", "cpu", "storage", "profileList", "uid", "fsGid", "extraFiles",
    },
    "singleuser.memory": {"guarantee", "limit"},
    "singleuser.cpu": {"guarantee", "limit"},
    "singleuser.storage": {"capacity", "extraVolumes", "extraVolumeMounts", "type", "homeMountPath"},
    "cull": {"enabled", "timeout", "every", "maxAge"},
}  # fmt: skip


def at(values: dict[str, Any], path: str) -> dict[str, Any]:
    for name in path.split(".") if path else ():
        values = values[name]
    return values


def test_the_values_use_only_keys_that_the_chart_knows() -> None:
    values = yaml.safe_load((HUB / "kubernetes" / "values.yaml").read_text())
    unknown = {path: set(at(values, path)) - known for path, known in CHART_KEYS.items()}
    assert not any(unknown.values()), unknown


def test_what_a_pod_mounts_are_volumes_that_it_has() -> None:
    storage = yaml.safe_load((HUB / "kubernetes" / "values.yaml").read_text())["singleuser"]["storage"]
    assert {m["name"] for m in storage["extraVolumeMounts"]} == {v["name"] for v in storage["extraVolumes"]}
    pod = yaml.safe_load((HUB / "kubernetes" / "grade.yaml").read_text())["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert {m["name"] for m in container["volumeMounts"]} == {v["name"] for v in pod["volumes"]}


def test_the_grading_job_runs_a_command_of_the_autograder_on_an_assignment_of_the_course() -> None:
    pod = yaml.safe_load((HUB / "kubernetes" / "grade.yaml").read_text())["spec"]["template"]["spec"]
    program, module, name, command, assignment, option, _ = pod["containers"][0]["command"]
    assert [program, module, name, command, option] == ["python", "-m", "autograder", "grade", "--course"]
    assert (ROOT / "exercises" / "source" / assignment).is_dir()


def test_the_images_are_built_from_what_is_there_and_pin_the_hub_that_is_tested() -> None:
    text = (HUB / "Dockerfile").read_text()
    instructions = {line.split()[0] for line in re.sub(r"\\\n", "", text).splitlines() if line and line[0] != "#"}
    assert instructions <= {"FROM", "RUN", "COPY", "USER", "WORKDIR", "CMD"}
    assert re.findall(r"^COPY (\S+)", text, re.M) == ["dist/learner", "."]  # the first is made by `make learner-dist`
    pinned = re.search(r"^jupyterhub==(\S+)", (ROOT / "constraints.txt").read_text(), re.M)
    assert pinned is not None
    assert f"jupyterhub=={pinned[1]}" in text


def test_the_container_for_development_uses_the_courses_own_set_up() -> None:
    found = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    script, extra = re.findall(r"python (\S+\.py) (\S+)", found["postCreateCommand"])[0]
    assert f'"{extra}"' in (ROOT / script).read_text()
