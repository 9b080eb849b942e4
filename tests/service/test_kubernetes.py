"""The manifests of dist/kubernetes: they are what Kubernetes takes, and closed and bounded. tests/package/try_compose runs their
containers on a Docker daemon of its own."""

import copy
import functools
import json
import operator
import re
import shutil
import subprocess

import pytest
import yaml

import node_packages
from croupier import BINARY, PATIENCE, ROOT

pytestmark = pytest.mark.depends_on()

MANIFESTS = sorted((ROOT / "dist" / "kubernetes").glob("*.yaml"))


def objects(path):
    return list(yaml.safe_load_all(path.read_text()))


def workload(path):
    [found] = [one for one in objects(path) if one["kind"] in ("Deployment", "StatefulSet")]
    return found


def complaints(directory, manifests):
    """[(the number of an object, what is wrong with it)], by the schemas of Kubernetes' objects, which pass over members that they do
    not know, and by their types, which refuse those."""
    source = ROOT / "tests" / "kubernetes"
    modules = node_packages.install(source, BINARY.parent / "kubernetes")
    (directory / "node_modules").symlink_to(modules)
    shutil.copy(source / "check.mjs", directory)
    (directory / "objects.json").write_text(json.dumps(manifests))
    lines = [f'export const o{n}: import("kubernetes-models/{one["apiVersion"]}").I{one["kind"]} = {json.dumps(one)};\n'
             for n, one in enumerate(manifests)]
    (directory / "objects.ts").write_text("".join(lines))

    def run(*command):
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300 * PATIENCE)
        assert done.stderr == "", done.stderr
        return done.stdout

    schemas = run("node", "check.mjs", "objects.json")
    types = run(modules / ".bin" / "tsc", "--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "esnext",
                "--moduleResolution", "bundler", "objects.ts")
    return [(int(number), told) for number, told in re.findall(r"^(\d+): (.*)$", schemas, re.MULTILINE)] + [
        (int(line) - 1, told) for line, told in re.findall(r"^objects\.ts\((\d+),\d+\): error (.*)$", types, re.MULTILINE)]


@pytest.mark.only("embedded", "sqlite")  # croupier is not run, so no sanitized run has it
@pytest.mark.takes("node", "npm")
def test_kubernetes_takes_the_manifests_and_not_what_is_spoilt(tmp_path):
    assert [path.stem for path in MANIFESTS] == ["embedded", "replicated"]
    manifests = [one for path in MANIFESTS for one in objects(path)]
    faults = (("Deployment", "spec.replicas", "2", "must be integer"),
              ("Deployment", "spec.template.spec.containers.0.livenessprobe", {}, '"livenessprobe"'),
              ("StatefulSet", "spec.template.spec.volumes.0.configMap.nam", "x", '"nam"'),
              ("Service", "spec.ports.0.port", None, "must be integer"),
              ("NetworkPolicy", "spec.policytypes", [], '"policytypes"'))
    spoilt = []
    for kind, path, value, _ in faults:
        spoilt.append(copy.deepcopy(next(one for one in manifests if one["kind"] == kind)))
        *way, last = [int(word) if word.isdigit() else word for word in path.split(".")]
        functools.reduce(operator.getitem, way, spoilt[-1])[last] = value
    found = complaints(tmp_path, manifests + spoilt)
    assert [one for one in found if one[0] < len(manifests)] == []
    for number, (_, path, _, told) in enumerate(faults, len(manifests)):
        assert [text for of, text in found if of == number and told in text], (path, [one for one in found if one[0] == number])


@pytest.mark.parametrize("path", MANIFESTS, ids=[path.stem for path in MANIFESTS])
def test_the_pods_are_closed_and_bounded(path):
    pod = workload(path)["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not pod["automountServiceAccountToken"] and not pod["enableServiceLinks"]
    version = re.search(r"^ *version: '(.+)',$", (ROOT / "meson.build").read_text(), re.MULTILINE)[1]
    for container in pod["initContainers"] + pod["containers"]:
        assert container["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                                "capabilities": {"drop": ["ALL"]}}
        assert {"cpu", "memory"} == set(container["resources"]["limits"]) and container["image"] == f"croupier:{version}"
        assert {mount["name"] for mount in container["volumeMounts"]} == {
            volume["name"] for volume in pod["volumes"]} | {
            claim["metadata"]["name"] for claim in workload(path)["spec"].get("volumeClaimTemplates", [])}
    [container] = pod["containers"]
    ports = {port["name"] for port in container["ports"]}
    assert {container[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe")} <= ports
    [settings] = [one["data"]["croupier.conf"] for one in objects(path) if one["kind"] == "ConfigMap"]
    drain = int(re.search(r"^drain_seconds = (\d+)$", settings, re.MULTILINE)[1])
    pause = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pause > container["readinessProbe"]["periodSeconds"] * container["readinessProbe"]["failureThreshold"]
    assert pod["terminationGracePeriodSeconds"] > pause + drain


@pytest.mark.parametrize("path", MANIFESTS, ids=[path.stem for path in MANIFESTS])
def test_the_objects_find_one_another(path):
    labels = workload(path)["spec"]["template"]["metadata"]["labels"]
    selectors = {one["kind"]: one["spec"].get("podSelector") or one["spec"]["selector"] for one in objects(path)
                 if one["kind"] != "ConfigMap"}
    for kind, selector in selectors.items():
        assert (selector if kind == "Service" else selector["matchLabels"]) == labels, kind
    names = {(one["kind"], one["metadata"]["name"]) for one in objects(path)}
    assert names >= {("ConfigMap", "croupier"), ("Service", "croupier"), ("NetworkPolicy", "croupier")}


def test_the_program_takes_the_settings(service):
    """With the secrets where the manifest has them, and the volume elsewhere."""
    for path in MANIFESTS:
        [settings] = [one["data"]["croupier.conf"] for one in objects(path) if one["kind"] == "ConfigMap"]
        for name in re.findall(r"/run/secrets/croupier/(\S+-password)", settings):
            (service.directory / name).write_text("secret\n")
            (service.directory / name).chmod(0o440)
        (service.directory / "croupier.conf").write_text(settings.replace("/run/secrets/croupier", str(service.directory)))
        checks = json.loads(service.run("check", "--json", "-c", service.directory / "croupier.conf", configuration=False,
                                        status=1).text)
        assert checks[0]["check"] == "configuration" and checks[0]["ok"], checks


def test_the_page_names_what_is_there():
    page = (ROOT / "docs" / "kubernetes.md").read_text()
    [secret] = re.findall(r"create secret generic croupier(.*?)\n```", page, re.DOTALL)
    [settings] = [one["data"]["croupier.conf"] for one in objects(MANIFESTS[1]) if one["kind"] == "ConfigMap"]
    assert set(re.findall(r"--from-file=(\S+?)(?:=|\s|$)", secret)) == set(re.findall(r"/run/secrets/croupier/([\w.-]+)", settings))
    for name in re.findall(r"kubectl apply -f (\S+)", page):
        assert (ROOT / "dist" / "kubernetes" / name).exists()
