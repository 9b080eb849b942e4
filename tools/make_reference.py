#!/usr/bin/env python3
"""One page of reference from the OpenAPI documents, which needs no network: tools/make_reference.py NODE_MODULES PAGE (`make docs`).

Redoc, from the packages of tools/reference, shows the document that is chosen at the top.
"""

import html
import json
import re
import sys
from pathlib import Path

import yaml

DOCS = Path(__file__).resolve().parent.parent / "docs"
DOCUMENTS = ("openapi", "provider", "admin")
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>croupier: reference</title>
<style>body {{ margin: 0 }} nav {{ padding: 8px 16px; font: 14px sans-serif }} nav a {{ margin-right: 24px }}</style>
</head>
<body>
<nav>{links}</nav>
<div id="reference"></div>
<script>{redoc}</script>
<script>
const documents = {documents};
const chosen = new URLSearchParams(location.search).get("document");
Redoc.init(documents[chosen] ?? documents.openapi, {{hideLoading: true}}, document.getElementById("reference"));
</script>
</body>
</html>
"""


def in_script(text):
    """Text that cannot end the script element that it stands in."""
    return re.sub("</(script)", r"<\\/\1", text, flags=re.IGNORECASE).replace("<!--", "<\\!--")


def main(modules, page):
    documents = {name: yaml.safe_load((DOCS / f"{name}.yaml").read_text()) for name in DOCUMENTS}
    redoc = (Path(modules) / "redoc" / "bundles" / "redoc.standalone.js").read_text()
    Path(page).write_text(PAGE.format(
        links="".join(f'<a href="?document={name}">{html.escape(document["info"]["title"])}</a>' for name, document in documents.items()),
        redoc=in_script(redoc), documents=in_script(json.dumps(documents, ensure_ascii=False, default=str))))


if __name__ == "__main__":
    main(*sys.argv[1:])
