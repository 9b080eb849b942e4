"""What the Debian package is made of fits the program, without building it: that is `make deb`, and `make test-deb` tries it."""

import copy
import functools
import json
import operator
import os
import re
import shutil
import subprocess
import time

import jsonschema
import pytest
import yaml

import node_packages
from croupier import BINARY, PATIENCE, ROOT

pytestmark = pytest.mark.depends_on()

DEBIAN = ROOT / "debian"


def test_the_versions_are_one():
    version = re.search(r"^ *version: '(.+)',$", (ROOT / "meson.build").read_text(), re.MULTILINE)[1]
    assert re.match(r"croupier \((.+?)\)", (DEBIAN / "changelog").read_text())[1] == version
    assert f"croupier_{version}~deb12_amd64.deb" in (ROOT / "docs" / "package.md").read_text()
    assert f"CROUPIER_IMAGE:-croupier:{version}}}" in (ROOT / "dist" / "compose" / "compose.yaml").read_text()


def test_building_the_package_wants_what_setup_installs():
    control = (DEBIAN / "control").read_text().partition("Build-Depends:")[2].partition("\nStandards")[0]
    wanted = set(re.findall(r"(?:^|,)\s*([a-z][a-z0-9.+-]+)", control))
    setup = (ROOT / "tools" / "setup").read_text()
    installed = set(re.split(r"\s+|=[\d.]+", re.search(r"build_packages='(.+?)'", setup, re.DOTALL)[1]))
    assert wanted - {"debhelper-compat", "dh-sequence-installsysusers"} <= installed
    # dpkg-buildpackage wants them without being asked, and a bare system has neither.
    assert {"build-essential", "debhelper"} <= set(re.search(r"package_packages='(.+?)'", setup)[1].split())
    # gcc, libc and ninja come with build-essential and meson; curl is for what the tools fetch.
    assert installed - wanted <= {"", "gcc", "libc6-dev", "ninja-build", "curl"}


def test_the_package_depends_on_the_interpreter_of_the_kit():
    """lintian fails `make deb` without it."""
    assert (ROOT / "kit" / "certify").read_text().startswith("#!/usr/bin/env python3\n")
    assert re.search(r"^Depends: (.*, )?python3:any\b", (DEBIAN / "control").read_text(), re.MULTILINE)


def test_the_package_configures_without_its_configuration(tmp_path):
    """dpkg installs no configuration file that the administrator has removed."""
    settings = tmp_path / "croupier.conf"
    postinst = tmp_path / "postinst"
    postinst.write_text((DEBIAN / "croupier.postinst").read_text().replace("/etc/croupier/croupier.conf", str(settings)))
    for name, text in (("dpkg-statoverride", "exit 1"), ("chown", 'echo "$*" && exec test -e "$2"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)

    def configure():
        return subprocess.run(["sh", postinst, "configure", ""], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, text=True,
                              timeout=60 * PATIENCE)

    assert configure().returncode == 0
    settings.touch(0o644)
    assert configure().stdout == f"root:croupier {settings}\n" and settings.stat().st_mode & 0o777 == 0o640


def install(directory, **options):
    """`make install`, which the package's rules call with the same variables: the directory that stands for /."""
    rules = (DEBIAN / "rules").read_text()
    [zsh] = re.findall(r"zsh_completions=(\S+)", rules)
    tree = directory / "tree"
    tree.mkdir(parents=True)
    for name in ("Makefile", "dist", "kit", "man", "tools"):
        (tree / name).symlink_to(ROOT / name)
    (tree / "build").mkdir()
    (tree / "build" / "croupier").symlink_to(BINARY)
    done = subprocess.run(["make", "install", "--assume-old=build", "SETUP=:", f"DESTDIR={directory / 'root'}", "prefix=/usr",
                           f"zsh_completions={zsh}"], cwd=tree, capture_output=True, text=True, timeout=120 * PATIENCE, **options)
    assert done.returncode == 0, done.stderr
    return directory / "root"


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_what_is_installed_is_written_by_its_owner_and_read_by_all(tmp_path, umask):
    modes = {path.relative_to(tmp_path): path.stat().st_mode & 0o777 for path in install(tmp_path, umask=umask).rglob("*")}
    assert {str(path): oct(mode) for path, mode in modes.items() if mode not in (0o644, 0o755)} == {}


def test_what_is_installed_is_all_that_an_installation_needs(tmp_path):
    root = install(tmp_path)
    documents = root / "usr/share/doc/croupier"
    for page in documents.rglob("*.md"):
        for link in re.findall(r"\]\(([^)#:]+)[)#]", page.read_text()):
            assert (page.parent / link).is_file(), (page, link)
    assert (documents / "who-calls-whom.svg").is_file() and (documents / "README.md").is_file()
    shutil.rmtree(documents)
    found = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert found == {
        "usr/bin/croupier", "usr/share/man/man1/croupier.1", "usr/lib/systemd/system/croupier.service",
        "usr/lib/sysusers.d/croupier.conf", "usr/lib/tmpfiles.d/croupier.conf",
        "usr/share/bash-completion/completions/croupier", "usr/share/zsh/vendor-completions/_croupier",
        "usr/share/fish/vendor_completions.d/croupier.fish", "usr/share/croupier/croupier.rules.yml",
        "usr/share/croupier/grafana/croupier.json", "usr/share/croupier/kit/certify",
        *(f"usr/share/croupier/kit/{cases.name}" for cases in (ROOT / "kit").glob("*.json")), "etc/croupier/croupier.conf", "usr/lib/croupier/croupier-backup",
        *(f"usr/lib/systemd/system/croupier-{job}.{kind}" for job in ("backup", "verify") for kind in ("service", "timer"))}
    for path in (root / "usr/lib").rglob("croupier*"):
        assert path.is_dir() or "dir@" not in path.read_text()
    units = sorted((root / "usr/lib/systemd/system").iterdir())
    for unit in units:
        unit.write_text(unit.read_text().replace("=/usr/bin/croupier", "=/bin/true").replace("=/usr/lib/croupier/", "=/bin/true "))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, timeout=120 * PATIENCE)
    assert not [line for line in done.stderr.splitlines() if "croupier" in line], done.stderr


def test_the_daily_backup_removes_old_ones_after_a_new_one(tmp_path):
    script = tmp_path / "croupier-backup"
    script.write_text((ROOT / "dist" / "croupier-backup").read_text().replace("@bindir@", str(tmp_path)))
    croupier = tmp_path / "croupier"
    croupier.write_text('#!/bin/sh\nmkdir "$2"\n')
    croupier.chmod(0o755)
    backups = tmp_path / "backups"
    ages = {"2026-01-01-023000": 390, "2026-09-01-023000": 80, "2026-09-02-023000": 79, "2026-10-31-023000": 20,
            "2026-09-03-023000.unfinished-abcdef": 78, "mine": 500, "2026-photos": 500}
    for name, days in ages.items():
        (backups / name).mkdir(parents=True)
        (backups / name / "platform.db").write_text("x")
        os.utime(backups / name, (time.time() - days * 86400,) * 2)

    def run():
        done = subprocess.run(["sh", script], env={"PATH": "/usr/bin:/bin", "BACKUPS": str(backups), "DAYS": "31", "MONTHS": "12"},
                              timeout=60 * PATIENCE)
        return done.returncode, {path.name for path in backups.iterdir()}

    status, left = run()
    [made] = left - set(ages)
    assert status == 0 and re.fullmatch(r"\d{4}-\d\d-\d\d-\d{6}", made)
    assert left - {made} == {"2026-09-01-023000", "2026-10-31-023000", "mine", "2026-photos"}
    os.utime(backups / "2026-10-31-023000", (1, 1))
    croupier.write_text("#!/bin/sh\nexit 1\n")
    assert run() == (1, left)


@pytest.mark.only("embedded", "sqlite")  # croupier is not run, so no sanitized run has it
@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="not a Debian system")
def test_the_list_of_parts_is_cyclonedx_and_the_same_each_time(tmp_path):
    """Of a small package with the dependencies that croupier's has: what it says, and that CycloneDX's own schema takes it."""
    control = tmp_path / "package" / "DEBIAN" / "control"
    control.parent.mkdir(parents=True)
    control.write_text("Package: croupier\nVersion: 1.2.3~deb12\nArchitecture: amd64\nMaintainer: A <a@b.invalid>\n"
                       "Depends: systemd | systemd-sysusers, libc6 (>= 2.34), liblmdb0, zlib1g (>= 1:1.2)\nDescription: x\n")
    package = tmp_path / "croupier.deb"
    subprocess.run(["dpkg-deb", "-b", control.parent.parent, package], check=True, capture_output=True)
    documents = []
    for number in range(2):
        output = tmp_path / f"{number}.json"
        subprocess.run([ROOT / "tools" / "make_sbom.py", package, output, "--static-llhttp"], check=True, timeout=60 * PATIENCE,
                       env={**os.environ, "SOURCE_DATE_EPOCH": "1795398000", "PATH": "/usr/bin:/bin"})
        documents.append(output.read_bytes())
    assert documents[0] == documents[1]
    document = json.loads(documents[0])
    assert (document["bomFormat"], document["specVersion"], document["version"]) == ("CycloneDX", "1.5", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", document["serialNumber"])
    assert document["metadata"]["timestamp"] == "2026-11-23T01:40:00Z"
    parts = document["components"]
    linked = {part["name"]: [entry["value"] for entry in part.get("properties", []) if entry["name"] == "croupier:linked"]
              for part in parts}
    assert {name for name in linked if linked[name] == ["static"]} == {"libllhttp-dev"}
    assert {"libc6", "liblmdb0", "zlib1g"} == {name for name in linked if not linked[name]} and len(parts) == 4
    assert all(part["purl"].startswith("pkg:") and part["version"] for part in parts)
    references = [part["bom-ref"] for part in parts]
    assert len(set(references)) == len(references)
    assert document["dependencies"] == [{"ref": document["metadata"]["component"]["bom-ref"], "dependsOn": references}]
    validator = cyclonedx_validator()
    assert not [error.message for error in validator.iter_errors(document)]
    # The schema is one that refuses: a licence that SPDX does not know, a member that it does not name.
    for path, value in ((("components", 3, "licenses", 0, "license", "id"), "No-Such"), (("components", 0, "colour"), "red"),
                        (("metadata", "component", "type"), "gadget")):
        spoilt = copy.deepcopy(document)
        functools.reduce(operator.getitem, path[:-1], spoilt)[path[-1]] = value
        assert not validator.is_valid(spoilt), path


def test_the_containers_are_closed_and_bounded(service):
    """What compose.yaml says of them; tests/package/try_compose runs them. And `prepare`: one password a place, no other reader."""
    shutil.copytree(ROOT / "dist", service.directory / "dist")
    place = service.directory / "dist" / "compose"
    compose = yaml.safe_load((place / "compose.yaml").read_text())
    for name, container in compose["services"].items():
        assert container["read_only"] and container["cap_drop"] == ["ALL"], name
        assert container["security_opt"] == ["no-new-privileges:true"], name
        assert {"mem_limit", "cpus", "pids_limit", "logging", "healthcheck", "networks"} <= container.keys(), name
        image = re.fullmatch(r"\$\{[A-Z]+_IMAGE:-(.+):(\S+)\}", container["image"])
        assert image and re.match(r"\d+\.\d+", image[2]), name
        assert ("ports" in container) == (name == "haproxy"), name
    subprocess.run([place / "prepare"], check=True, timeout=60 * PATIENCE)
    secrets = place / "secrets"
    assert secrets.stat().st_mode & 0o777 == 0o700
    given = {name: (secrets / name).read_text() for name in ("croupier.conf", "redis.conf", "postgresql.sql", "postgres-password")}
    odds, platform = re.findall(r"://croupier:([0-9a-f]{48})@", given["croupier.conf"])
    assert re.search(rf"^user croupier on >{odds} ", given["redis.conf"], re.MULTILINE)
    assert f"ROLE croupier LOGIN PASSWORD '{platform}'" in given["postgresql.sql"]
    passwords = {match for text in given.values() for match in re.findall(r"[0-9a-f]{48}", text)}
    assert len(passwords) == 7  # of two users of PostgreSQL and its superuser, and of four of Redis
    for file in [entry["file"] for entry in compose["secrets"].values()] + [
            volume.split(":")[0] for container in compose["services"].values() for volume in container.get("volumes", [])
            if volume.startswith(".")]:
        assert (place / file).exists(), file
    again = subprocess.run([place / "prepare"], capture_output=True, text=True, timeout=60 * PATIENCE)
    assert again.returncode == 1 and "nothing was changed" in again.stderr
    assert (secrets / "croupier.conf").read_text() == given["croupier.conf"]
    checks = json.loads(service.run("check", "--json", "-c", secrets / "croupier.conf", configuration=False, status=1).text)
    assert checks[0]["check"] == "configuration" and checks[0]["ok"], checks


def test_the_containers_have_room_for_the_threads_of_a_large_host(make_service):
    """croupier starts 64 serving threads at most unless it is told more (config/test_processors.c), HAProxy as many as the host has
    processors; commands and health checks come on top."""
    limits = {name: container["pids_limit"] for name, container in
              yaml.safe_load((ROOT / "dist" / "compose" / "compose.yaml").read_text())["services"].items()}
    service = make_service({"server.threads": 64})
    service.start()
    threads = len(os.listdir(f"/proc/{service.process.pid}/task"))
    assert 64 < threads < limits["croupier-1"] - 64 and limits["haproxy"] > 256 + 64


def cyclonedx_validator():
    """Of JSON documents of CycloneDX 1.5, by the schema that its own library ships."""
    modules = node_packages.install(ROOT / "tests" / "cyclonedx", BINARY.parent / "cyclonedx")
    schemas = modules / "@cyclonedx" / "cyclonedx-library" / "res" / "schema"
    bom, *referred = (json.loads((schemas / f"{name}.SNAPSHOT.schema.json").read_text())
                      for name in ("bom-1.5", "spdx", "jsf-0.82"))
    store = {f"http://cyclonedx.org/schema/{name}.SNAPSHOT.schema.json": schema
             for name, schema in zip(("spdx", "jsf-0.82"), referred)}
    jsonschema.Draft7Validator.check_schema(bom)
    return jsonschema.Draft7Validator(bom, resolver=jsonschema.RefResolver.from_schema(bom, store=store),
                                      format_checker=jsonschema.FormatChecker())
