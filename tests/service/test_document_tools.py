"""What tools make of the OpenAPI documents: Redocly's score and lint, Spectral, the requests of Postman's importer against the demo, and
the page of `make docs`."""

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.parse

import pytest

import node_packages
from croupier import BINARY, PATIENCE, ROOT, api_document
from test_demo import client, demo  # noqa: F401 (a fixture)
from wallet_model import Provider, add_games, add_player, claims_of

pytestmark = pytest.mark.only("embedded", "sqlite")  # what the demo has

LEAST = {"openapi": 85, "provider": 85, "admin": 80}  # of 100
WARNINGS = 5


def packages(name):
    return node_packages.install(ROOT / {"reference": "tools", "importers": "tests"}[name] / name, BINARY.parent / name)


def run(modules, command, *words, status=0):
    done = subprocess.run([modules / ".bin" / command, *words], cwd=ROOT / "docs", capture_output=True, text=True, timeout=180 * PATIENCE,
                          env={**os.environ, "REDOCLY_TELEMETRY": "off", "HOME": str(modules.parent)})
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long(12)
@pytest.mark.parametrize("name", LEAST)
def test_redocly_scores_and_lints(name):
    node_packages.needs_node((20, 19))  # as "engines" of @redocly/cli says
    modules = packages("reference")
    score = json.loads(run(modules, "redocly", "score", f"{name}.yaml", "--format=json"))
    assert score["agentReadiness"] >= LEAST[name], score["subscores"]
    found = json.loads(run(modules, "redocly", "lint", f"{name}.yaml", "--format=json"))
    assert found["totals"]["errors"] == 0 and found["totals"]["warnings"] <= WARNINGS, found["problems"]


@pytest.mark.long(20)
def test_spectral_finds_no_error(tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text('extends: ["spectral:oas"]\n')
    run(packages("importers"), "spectral", "lint", "-r", str(rules), "--fail-severity=error", *(f"{name}.yaml" for name in LEAST))


def converted(name):
    modules = packages("importers")
    done = subprocess.run(["node", ROOT / "tests" / "importers" / "convert.mjs", ROOT / "docs" / f"{name}.yaml", modules],
                          capture_output=True, text=True, timeout=120 * PATIENCE)
    assert done.returncode == 0, done.stderr
    requests = json.loads(done.stdout)
    document = api_document(name)
    assert len(requests) == sum(verb in ("get", "post", "put", "patch", "delete") for item in document["paths"].values() for verb in item)
    return requests


def sent(address, request, fields=(), body=None):
    connection = http.client.HTTPConnection(*address, timeout=60 * PATIENCE)
    try:
        query = urllib.parse.urlencode(dict(request["query"]))
        connection.request(request["method"], request["path"] + (f"?{query}" if query else ""),
                           body if body is not None else request["body"], {**dict(request["headers"]), **dict(fields)})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_what_postman_makes_of_openapi_yaml_works_on_the_demo(demo):  # noqa: F811
    told = demo("--json").told()
    address = client(told).address
    key = {"Authorization": f"Bearer {told['key']}"}
    player = None
    for request in converted("openapi"):
        body = request["body"]
        if request["path"].startswith("/api/v1/account"):  # which is not there for a key without the areas
            assert sent(address, request, key)[0] == 404
            continue
        if player:  # which the example cannot know
            body = json.dumps({**json.loads(body), "player_id": player})
        status, answer = sent(address, request, key, body)
        assert status == 200, (request, answer)
        if request["path"].endswith("/launch"):
            player = json.loads(answer)["player_id"]
    assert json.loads(answer)["operation"] == "BALANCE" and json.loads(answer)["player_id"] == player


def test_what_postman_makes_of_admin_yaml_is_taken_by_the_demo(demo):  # noqa: F811
    """Records of the examples that the demo has not are 404; nothing is refused for its form."""
    told = demo("--json").told()
    address = client(told).operator_address
    token = subprocess.run([BINARY, "operator", "token", "add", "postman", "--role", "owner", "-c", told["config"]], capture_output=True,
                           text=True, check=True).stdout.strip()
    done = set()
    for request in converted("admin"):
        status, answer = sent(address, request, {"Authorization": f"Bearer {token}"})
        if request["path"] == "/admin/v1/session" and request["method"] != "GET":
            assert status in (401, 403), (request, answer)  # a link that was used; a token has no session
            continue
        assert status in (200, 201, 202, 204, 404) or (request["method"], status) == ("DELETE", 409), (request, answer)
        assert status != 404 or json.loads(answer)["error"]["code"] == "unknown_record", (request, answer)
        if status < 400:
            done.add((request["method"], request["path"]))
    assert {("POST", f"/admin/v1/{name}") for name in ("customers", "addresses", "providers", "games/import", "operators", "tokens",
                                                       "ledger/verification")} <= done
    assert {("GET", f"/admin/v1/{name}") for name in ("session", "overview", "customers", "providers", "games", "players", "blocks", "feed",
                                                      "ledger", "rounds", "audit", "usage", "settings", "health")} <= done


def test_what_postman_makes_of_provider_yaml_works_when_it_is_signed(make_service):
    """The importer cannot sign; the test does, as a script before the request does."""
    service = make_service({"provider.listen": "127.0.0.1:0"})
    customer = service.add_customer("House", options=["--casino"])
    add_games(service, "dice")
    service.start()
    add_player(service, customer)
    launch = service.request("POST", "/api/v1/casino/games/dice/launch", key=customer.key, headers={"Content-Type": "application/json"},
                             body=b'{"mode":"real","player_reference":"alice","currency":"EUR"}').json()
    [request] = converted("provider")
    body = json.dumps({**json.loads(request["body"]), "player_id": claims_of(launch["launch_url"])["sub"]}).encode()
    status, answer = sent(service.provider_address, request, Provider(service).fields(body), body)
    assert status == 200 and json.loads(answer)["operation"] == "BALANCE", answer


def test_the_reference_page_has_every_operation(tmp_path):
    page = tmp_path / "reference.html"
    done = subprocess.run([sys.executable, ROOT / "tools" / "make_reference.py", packages("reference"), page], capture_output=True, text=True,
                          timeout=60 * PATIENCE)
    assert done.returncode == 0, done.stderr
    assert not re.search(r'(?:src|href)="https?:|\bimport\b[^;]{0,80}"https?:', page.read_text())  # it needs no network
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium here; on Debian, tools/setup test installs it")
    for name in LEAST:
        shown = subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/{name}",
                                "--virtual-time-budget=20000", "--dump-dom", f"file://{page}?document={name}"], capture_output=True,
                               text=True, timeout=120 * PATIENCE).stdout
        document = api_document(name)
        rendered = re.sub(r"<script.*?</script>", "", shown, flags=re.DOTALL)
        for item in document["paths"].values():
            for verb in set(item) & {"get", "post", "put", "patch", "delete"}:
                assert f"operation/{item[verb]['operationId']}" in rendered, item[verb]["operationId"]
