"""The kit for third parties: all its cases against a server, and its cases against the documents."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from xml.etree import ElementTree

import pytest

from croupier import PATIENCE, ROOT, Service, match_odds, row
from servers import free_port
from test_demo import Demo
from wallet_model import SECRET, add_games

KIT = ROOT / "kit"
GAME = "anubis-falls"  # of the demo
CASES = {file.name: json.loads(file.read_text()) for file in sorted(KIT.glob("*.json"))}


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    server = Service(tmp_path_factory.mktemp("kit"), {"provider.listen": "127.0.0.1:0"})
    try:
        server.customer = server.add_customer("Kit", options=["--casino", "--sandbox", "on"])
        add_games(server, "roulette", options=["--sandbox", "on"])
        game = {"name": "x", "provider": "acme", "category": "slots", "currencies": ["EUR"]}
        server.run("game", "import", "-", input=json.dumps([{**game, "id": "grown-up", "demo": False},
                                                           {**game, "id": "abroad", "demo": True, "blocked_countries": ["US"]}]))
        server.publish("cricket", [row(34000001)], {34000001: match_odds()})
        other = server.add_customer("Other", options=["--casino"])
        limited = server.add_customer("Limited", rate="1/3600")
        server.keys = {"KEY": server.customer.key, "OTHER_KEY": other.key, "LIMITED_KEY": limited.key,
                       "NO_CASINO_KEY": server.add_customer("Sports").key,
                       "ONE_SPORT_KEY": server.add_customer("Cricket", sports="cricket").key,
                       "MANAGE_KEY": server.issue_key(server.customer.id, "--only", "account,manage")}
        server.start()
        server.await_admission(server.keys["MANAGE_KEY"])
        yield server
    finally:
        server.stop()


def certify(*arguments, status=0, **environment):
    """What it prints; its exit status must be this one, and no secret may be in what it prints."""
    done = subprocess.run([sys.executable, KIT / "certify", *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, **environment}, timeout=120 * PATIENCE)
    assert done.returncode == status, re.sub("^pass .*\n", "", done.stdout, flags=re.MULTILINE) + done.stderr
    assert not any(secret in done.stdout + done.stderr for secret in environment.values() if secret)
    return done.stdout


def token_of(server, **document):
    answer = server.request("POST", "/api/v1/casino/games/roulette/launch", key=server.customer.key,
                            headers={"Content-Type": "application/json"}, body=json.dumps(document).encode())
    assert answer.status == 200, answer
    return answer.json()["player_id"], answer.json()["launch_url"].partition("token=")[2]


def test_all_cases_of_customers_pass(house, tmp_path):
    base = "http://" + ":".join(map(str, house.address))
    certify("customer", base, "--game", "roulette", "--blocked-game", "abroad", "--sandbox", "--strict", "--junit", tmp_path / "junit.xml", **house.keys)
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert int(suite.get("tests")) == len(suite) >= 60 and suite.get("failures") == suite.get("skipped") == "0"


def test_all_cases_of_providers_pass(house):
    base = "http://" + ":".join(map(str, house.provider_address))
    _, token = token_of(house, mode="real", player_reference="kit", currency="EUR")
    player, blocked = token_of(house, mode="real", player_reference="blocked", currency="EUR")
    _, demo = token_of(house, mode="demo")
    house.run("player", "block", player)
    for _ in range(2):  # with the same player again
        shown = certify("provider", base, "--provider", "acme", "--sandbox", "--strict", SECRET=SECRET, TOKEN=token, BLOCKED_TOKEN=blocked, DEMO_TOKEN=demo)
        assert len(re.findall("^pass ", shown, re.MULTILINE)) >= 60


def test_the_demo_passes(tmp_path):
    demo = Demo(tmp_path / "demo", "--json", environment={"CROUPIER_PROVIDER_LISTEN": f"127.0.0.1:{(port := free_port())}"})
    try:
        told = demo.told()
        base = told["api"].removesuffix("/api/v1")
        shown = certify("customer", base, "--game", GAME, KEY=told["key"])
        assert len(re.findall("^pass ", shown, re.MULTILINE)) >= 60
        request = urllib.request.Request(f"{base}/api/v1/casino/games/{GAME}/launch", b'{"mode":"real","player_reference":"kit","currency":"EUR"}',
                                         {"Authorization": f"Bearer {told['key']}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60 * PATIENCE) as answer:
            token = json.load(answer)["launch_url"].partition("token=")[2]
        shown = certify("provider", f"http://127.0.0.1:{port}", "--provider", "dune-studio", SECRET=Path(told["secret"]).read_text().strip(), TOKEN=token)
        assert len(re.findall("^pass ", shown, re.MULTILINE)) >= 60
    finally:
        assert demo.end()[0] == 0


def test_a_failure_says_what_was_expected_and_what_came(house, tmp_path):
    base = "http://" + ":".join(map(str, house.address))
    shown = certify("customer", base, "--only", "a sport that is none", "--junit", tmp_path / "junit.xml", status=1, KEY="crk_" + "0" * 36)
    assert "expected 400 invalid_sport, came 403 ip_not_allowed" in shown
    assert ElementTree.parse(tmp_path / "junit.xml").getroot()[0][0].tag == "failure"


def test_a_missing_precondition_is_no_failure_unless_strict(house):
    base, key = "http://" + ":".join(map(str, house.address)), house.customer.key
    shown = certify("customer", base, "--only", "without the casino", KEY=key)
    assert shown.startswith("not run") and "set NO_CASINO_KEY" in shown
    certify("customer", base, "--only", "without the casino", "--strict", status=1, KEY=key)
    certify("customer", base, "--only", "no such case", status=2, KEY=key)
    certify("customer", "ftp://x", status=2, KEY=key)
    certify("customer", base, status=2, KEY="")
    certify("provider", base, status=2, SECRET="")


def test_the_cases_are_listed_without_a_service():
    listed = {role: certify(role, "--list").splitlines() for role in ("customer", "provider")}
    assert all(len(lines) == sum(len(cases) for name, cases in CASES.items() if name.startswith(role)) for role, lines in listed.items())
    assert certify("--list").splitlines() == listed["customer"] + listed["provider"]
    assert len(certify("provider", "http://127.0.0.1:1", "--list", "--only", "stake").splitlines()) > 0
    for words in ((), ("customer",), ("--list", "--only", "("), ("customer", "--sandbox", "ftp://x")):
        certify(*words, status=2)


# ---- the cases and the documents --------------------------------------------------------------------------

WITHOUT = {  # what no caller can bring about at a service that is well
    "https_required", "request_timeout", "malformed_upstream_data", "overloaded", "catalog_unavailable",
    "cache_unavailable", "security_config_unavailable", "cache_timeout", "odds_not_found", "provider_unavailable",
    "balance_limit_exceeded"}


def steps_of(role):
    return [step for name, cases in CASES.items() if name.startswith(role) for case in cases for step in case["steps"]]


def test_each_refusal_of_the_documents_has_a_case():
    text = (ROOT / "docs/interface.md").read_text()
    codes = set(re.findall(r"^\| \d{3} \| `(\w+)` \|", text, re.MULTILINE))
    assert codes - WITHOUT == {step["error"] for step in steps_of("customer") if "error" in step}
    assert WITHOUT <= codes
    text = (ROOT / "docs/providers.md").read_text()
    codes = set(re.findall(r"^\| \d{3} \| `(\w+)` \|", text, re.MULTILINE))
    assert codes and codes <= {step.get("error") for step in steps_of("provider")}


def test_each_worked_call_of_the_providers_page_is_a_step():
    text = (ROOT / "docs/providers.md").read_text()
    rows = re.findall(r"\| ([A-Z]+) \| `(\{.*?\})`.*? \| (\d+) \| `(\w+)` \| \d+ \|", text)
    assert len(rows) == text.count("\n| DEBIT") + len(re.findall(r"^\| [^|]+ \| (?:DEBIT|CREDIT|ROLLBACK) \|", text, re.MULTILINE)) \
        + len(re.findall(r"^\| (?:CREDIT|ROLLBACK|BALANCE) \|", text, re.MULTILINE)) >= 40
    taken = [(step["wallet"], {name: value for name, value in step.get("with", {}).items() if not str(value).startswith("{")},
              step["status"], step.get("error", step.get("members", {}).get("status"))) for step in steps_of("provider") if "wallet" in step]
    missing = [found for found in rows if (found[0], json.loads(found[1]), int(found[2]), found[3]) not in taken]
    assert [json.loads(found[1])["transaction_id"] for found in missing] == ["t-15"]  # its bet came before a block: the operator's part


def slug(heading):
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


def test_each_case_has_a_name_of_its_own_and_a_section_that_exists():
    for role in ("customer", "provider"):
        cases = [case for name, cases in CASES.items() if name.startswith(role) for case in cases]
        assert len(cases) >= 60 and len({case["name"] for case in cases}) == len(cases)
        for case in cases:
            page, _, section = case["section"].partition("#")
            headings = re.findall(r"^##+ (.*)$", (ROOT / "docs" / page).read_text(), re.MULTILINE)
            assert section in map(slug, headings), case["name"]
