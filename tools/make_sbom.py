#!/usr/bin/env python3
"""Lists what is in a package of croupier: a software bill of materials, CycloneDX 1.5 as JSON.

usage: make_sbom.py PACKAGE.deb OUTPUT.json [--static-llhttp]

Run where the package was built: versions are those of the packages that are installed there. With --static-llhttp, llhttp
is part of the program (tools/make_deb). The same package gives the same bytes.
"""
import datetime
import hashlib
import json
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path
from urllib.parse import quote


def ask(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def release():
    return dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', Path("/etc/os-release").read_text(), re.MULTILINE))


def from_package(name, **more):
    """A component that a package of the release has."""
    version, architecture, source = ask("dpkg-query", "-W", "-f", "${Version}\t${Architecture}\t${source:Package}\n",
                                        name).splitlines()[0].split("\t")
    system = release()
    purl = f"pkg:deb/{system['ID']}/{name}@{quote(version, safe='~')}?arch={architecture}&distro={system['VERSION_CODENAME']}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
            "properties": [{"name": "croupier:source", "value": source}], **more}


def expat(url):
    return {"licenses": [{"license": {"id": "MIT"}}], "externalReferences": [{"type": "website", "url": url}]}


def compiled_in():
    return from_package("libllhttp-dev", licenses=[{"license": {"id": "MIT"}}],
                        externalReferences=[{"type": "website", "url": "https://llhttp.org"}])


def main():
    package, output, *more = sys.argv[1:]
    digest = hashlib.sha256(Path(package).read_bytes()).hexdigest()
    name, version, architecture, depends = (ask("dpkg-deb", "-f", package, field)
                                            for field in ("Package", "Version", "Architecture", "Depends"))
    libraries = sorted(set(re.findall(r"(?:^|, )(lib[^\s|,]+|zlib1g)", depends)))
    components = [from_package(library) for library in libraries]
    if more == ["--static-llhttp"]:
        components.append(compiled_in())
        components[-1]["properties"].append({"name": "croupier:linked", "value": "static"})
    purl = f"pkg:deb/{release()['ID']}/{name}@{version}?arch={architecture}"
    made = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, 'sha256:' + digest)}",
        "version": 1,
        "metadata": {
            "timestamp": made.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {"type": "application", "bom-ref": purl, "name": name, "version": version, "purl": purl,
                          "licenses": [{"license": {"id": "Apache-2.0"}}],
                          "hashes": [{"alg": "SHA-256", "content": digest}]},
        },
        "components": components,
        "dependencies": [{"ref": purl, "dependsOn": [part["bom-ref"] for part in components]}],
    }
    Path(output).write_text(json.dumps(document, indent=1) + "\n")


main()
