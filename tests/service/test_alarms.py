"""What an operator is woken for: metrics that alarms are made of, the alarms, their page, and the board."""

import contextlib
import json
import re
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from croupier import Service, eventually, match_odds, row
from engines import PLATFORM
from wallet_model import add_player, credit, send

ROOT = Path(__file__).resolve().parents[2]
ALARMS_PAGE = ROOT / "docs" / "alarms.md"
RULES_FILE = ROOT / "dist" / "prometheus" / "croupier.rules.yml"
RULES = [{"for": "0m", **rule} for group in yaml.safe_load(RULES_FILE.read_text())["groups"] for rule in group["rules"]]
BOARD = json.loads((ROOT / "dist" / "grafana" / "croupier.json").read_text())
SCOPES = ("whole", "recent")


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A running service with a player who has money."""
    service = Service(tmp_path_factory.mktemp("house"))
    service.customer = service.add_customer("House", options=["--casino"])
    service.start()
    service.await_admission(service.customer.key)
    service.player = add_player(service, service.customer, "alice")
    send(service, service.customer.key, credit(service.player, "in", 100))
    yield service
    service.remove()


def verifications(service):
    """Of each scope: (when it ended, whether it was sound), None where there is none."""
    metrics = service.metrics()
    name = "croupier_ledger_verification_"
    return {scope: (metrics[f'{name}timestamp_seconds{{scope="{scope}"}}'], metrics[f'{name}sound{{scope="{scope}"}}'])
            if f'{name}sound{{scope="{scope}"}}' in metrics else None for scope in SCOPES}


@pytest.mark.depends_on("platform")
def test_the_server_shows_how_the_last_verification_ended(house):
    before = time.time()
    assert verifications(house) == {"whole": None, "recent": None}
    house.run("wallet", "verify", "--since", "0")
    ended, sound = eventually(lambda: verifications(house)["recent"])
    assert sound == 1 and before - 1 < ended < time.time() + 1
    house.platform.execute("UPDATE ledger_account SET balance_minor = balance_minor + 1", tampering=True)
    house.run("wallet", "verify", status=1)
    assert eventually(lambda: verifications(house)["whole"])[1] == 0
    assert verifications(house)["recent"] == (ended, 1)
    house.platform.execute("UPDATE ledger_account SET balance_minor = balance_minor - 1", tampering=True)
    house.run("wallet", "verify")
    eventually(lambda: verifications(house)["recent"] is None)  # the whole of it was found sound since
    assert verifications(house)["whole"][1] == 1


@contextlib.contextmanager
def locked(platform):
    """Holds the lock that whoever writes an outcome needs."""
    if PLATFORM == "sqlite":
        with contextlib.closing(sqlite3.connect(platform.path, isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            yield
        return
    with platform.session() as holder:
        holder.stdin.write("BEGIN; LOCK TABLE ledger_verification IN SHARE MODE; SELECT 'held';\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == "held\n"
        yield
        holder.stdin.close()


@pytest.mark.long(10)
@pytest.mark.depends_on("platform")
def test_what_cannot_be_kept_is_said_and_the_proof_stands(house):
    with locked(house.platform):
        done = house.run("wallet", "verify")
    assert "sound: 1 entry of 1 player." in done.text
    assert "the outcome could not be kept" in done.errors
    house.run("wallet", "verify")


# ---- the rules, by Prometheus' own tool --------------------------------------------------------------

ME = 'job="croupier",instance="a:9090"'
WALLET = f"croupier_wallet_operations_total{{{ME},operation=\"DEBIT\",outcome="
CALLS = f"croupier_launch_calls_total{{{ME},outcome="
REQUESTS = f"croupier_requests_total{{{ME},route=\"/api/v1/sports\",status="
SECONDS = f"croupier_request_duration_seconds_bucket{{{ME},route=\"/api/v1/{{sport}}/events\",le="
DENIED = f"croupier_denials_total{{{ME},reason="
COMMITS = f"croupier_ledger_commit_seconds_bucket{{{ME},le="
DAYS = 86400
EXPIRY = f"croupier_tls_certificate_expiry_timestamp_seconds{{{ME},listener=\"public\"}}"
VERIFIED = "croupier_ledger_verification_"
DISK = [f"croupier_store_disk_{what}_bytes{{{ME},store=\"platform\"}}" for what in ("free", "size")]


def mine(name, values):
    return {f"{name}{{{ME}}}": values}


# Alarm: (series with which it fires, series with which it does not), a value a minute.
CASES = {
    "CroupierDown": (mine("up", "1 0x60"), mine("up", "1x60")),
    "CroupierRestarts": (mine("process_start_time_seconds", "0+100x60"), mine("process_start_time_seconds", "0x30 9x60")),
    "CroupierOddsStoreAway": (mine("croupier_odds_connected", "1 0x60"), mine("croupier_odds_connected", "1x60")),
    "CroupierStoreErrors": ({f'croupier_store_errors_total{{{ME},store="odds",kind="timeout"}}': "0+10x60"},
                            {f'croupier_store_errors_total{{{ME},store="odds",kind="timeout"}}': "0+1x60"}),
    "CroupierPolicyTableOld": (mine("croupier_policy_age_seconds", "Inf Inf 1e9x58"), mine("croupier_policy_age_seconds", "0.2x60")),
    "CroupierGamesTableOld": (mine("croupier_games_age_seconds", "6x60"), mine("croupier_games_age_seconds", "0.2x60")),
    "CroupierFeedStopped": ({f'croupier_feed_age_seconds{{{ME},sport="cricket"}}': "0+60x60"},
                            {f'croupier_feed_age_seconds{{{ME},sport="cricket"}}': "NaN _x29 119x30"}),
    "CroupierCatalogStale": ({f'croupier_catalog_age_seconds{{{ME},sport="cricket"}}': "301x60"},
                             {f'croupier_catalog_age_seconds{{{ME},sport="cricket"}}': "NaN _x29 299x30"}),
    "CroupierOddsStale": ({f'croupier_odds_stale_events{{{ME},sport="cricket"}}': "1x60"},
                          {f'croupier_odds_stale_events{{{ME},sport="cricket"}}': "0x60",
                           f'croupier_odds_age_seconds{{{ME},sport="cricket"}}': "299x60"}),
    "CroupierOddsExpired": ({f'croupier_odds_expired_total{{{ME},sport="cricket"}}': "0+1x60"},
                            {f'croupier_odds_expired_total{{{ME},sport="cricket"}}': "9x60"}),
    "CroupierLedgerRefusing": ({WALLET + '"ledger_unavailable"}': "0+1x60"},
                               {WALLET + '"ledger_unavailable"}': "5x60", WALLET + '"applied"}': "0+9x60"}),
    "CroupierLedgerCommitFailed": ({WALLET + '"internal_error"}': "0x30 1x30"},
                                   {WALLET + '"internal_error"}': "1x60", WALLET + '"ledger_unavailable"}': "0+1x60"}),
    "CroupierPlatformStoreRefusesWrites": (mine("croupier_usage_write_failures_total", "0+1x60"),
                                           mine("croupier_usage_write_failures_total", "0x50 1x10")),
    "CroupierPlatformStoreReadOnly": (mine("croupier_platform_read_only", "1x60"), mine("croupier_platform_read_only", "1 0x60")),
    "CroupierPlatformLogHeld": (mine("croupier_platform_log_held_bytes", "3e8x60"), mine("croupier_platform_log_held_bytes", "1e8x60")),
    "CroupierLedgerSlow": ({COMMITS + '"0.25"}': "0+97x60", COMMITS + '"1"}': "0+100x60", COMMITS + '"+Inf"}': "0+100x60"},
                           {COMMITS + '"0.25"}': "0+100x60", COMMITS + '"1"}': "0+100x60", COMMITS + '"+Inf"}': "0+100x60"}),
    "CroupierLedgerBroken": ({f'{VERIFIED}sound{{{ME},scope="recent"}}': "0x60"}, {f'{VERIFIED}sound{{{ME},scope="recent"}}': "1x60"}),
    "CroupierLedgerNotVerified": (
        {f'{VERIFIED}timestamp_seconds{{{ME},scope="whole"}}': f"-{9 * DAYS}x90"},
        {f'{VERIFIED}timestamp_seconds{{{ME},scope="whole"}}': f"-{7 * DAYS}x90", f'{VERIFIED}sound{{{ME},scope="whole"}}': "1x90",
         **mine("process_start_time_seconds", f"-{9 * DAYS}x90")}),
    "CroupierBackupOld": (mine("croupier_backup_age_seconds", "Inf 129700x90"), mine("croupier_backup_age_seconds", "129500x90")),
    "CroupierCertificateExpiresSoon": ({EXPIRY: f"{13 * DAYS}x90"}, {EXPIRY: f"{15 * DAYS}x90"}),
    "CroupierCertificateExpires": ({EXPIRY: f"{1 * DAYS}x60"}, {EXPIRY: f"{3 * DAYS}x60"}),
    "CroupierProvidersFailFast": ({CALLS + '"timeout"}': "0+20x60", CALLS + '"launched"}': "0+80x60"},
                                  {CALLS + '"timeout"}': "0+10x60", CALLS + '"abandoned"}': "0+50x60", CALLS + '"launched"}': "0+90x60"}),
    "CroupierProvidersFailSlowly": ({CALLS + '"broken"}': "0+7x60", CALLS + '"launched"}': "0+93x60"},
                                    {CALLS + '"broken"}': "0+5x60", CALLS + '"launched"}': "0+95x60"}),
    "CroupierErrors": ({REQUESTS + '"503"}': "0+2x60", REQUESTS + '"200"}': "0+98x60"},
                       {REQUESTS + '"503"}': "0+4x60", f'croupier_refusals_total{{{ME},reason="asked_for_unavailable"}}': "0+3x60", REQUESTS + '"404"}': "0+50x60", REQUESTS + '"200"}': "0+198x60",
                        f'croupier_requests_total{{{ME},route="/api/v1/health",status="503"}}': "0+60x60"}),
    "CroupierSlow": ({SECONDS + '"0.1"}': "0+97x60", SECONDS + '"0.25"}': "0+100x60", SECONDS + '"+Inf"}': "0+100x60"},
                     {SECONDS + '"0.1"}': "0+100x60", SECONDS + '"+Inf"}': "0+100x60"}),
    "CroupierDenials": ({DENIED + '"unknown_key"}': "0+120x60", REQUESTS + '"200"}': "0+600x60"},
                        {DENIED + '"unknown_key"}': "0+120x60", REQUESTS + '"200"}': "0+6000x60", DENIED + '"signature"}': "0+50x60"}),
    "CroupierConnectionsNearLimit": ({**mine("croupier_connections", "90x60"), **mine("croupier_connections_max", "100x60")},
                                     {**mine("croupier_connections", "80x60"), **mine("croupier_connections_max", "100x60")}),
    "CroupierConnectionsRefused": (mine("croupier_connections_refused_total", "0+1x60"), mine("croupier_connections_refused_total", "7x60")),
    "CroupierDescriptorsNearLimit": ({**mine("process_open_fds", "95x60"), **mine("process_max_fds", "100x60")},
                                     {**mine("process_open_fds", "85x60"), **mine("process_max_fds", "100x60")}),
    "CroupierDiskFillsUp": ({DISK[0]: "14x60", DISK[1]: "100x60"}, {DISK[0]: "16x60", DISK[1]: "100x60"}),
    "CroupierDiskFull": ({DISK[0]: "2x60", DISK[1]: "100x60"}, {DISK[0]: "4x60", DISK[1]: "100x60"}),
    "CroupierClockOff": (mine("croupier_clock_timestamp_seconds", "-6+60x60"), mine("croupier_clock_timestamp_seconds", "4+60x60")),
    "CroupierRateLimitsAlone": (mine("croupier_rate_alone_total", "0+1x60"), mine("croupier_rate_alone_total", "3x60")),
    "CroupierLogLinesDropped": (mine("croupier_log_lines_dropped_total", "0+1x60"), mine("croupier_log_lines_dropped_total", "9x60")),
}


def promtool(*arguments, **options):
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def trial(name, series, fires, at):
    return {"interval": "1m", "name": f"{name} {'fires' if fires else 'is quiet'}",
            "input_series": [{"series": key, "values": values} for key, values in series.items()],
            "promql_expr_test": [{"expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) > 0', "eval_time": at,
                                  "exp_samples": [{"labels": "{}", "value": 1}] if fires else []}]}


def try_rules(directory, trials):
    """Each trial of an alarm: (series, whether it fires). An alarm is evaluated alone, which costs least."""
    files = []
    for name, cases in trials.items():
        [rule] = [rule for rule in RULES if rule["alert"] == name]
        at = "85m" if rule["for"] == "1h" else "55m"
        (directory / f"{name}.rules.yml").write_text(json.dumps({"groups": [{"name": name, "rules": [rule]}]}))
        files.append(directory / f"{name}.yml")
        files[-1].write_text(json.dumps({"rule_files": [f"{name}.rules.yml"], "evaluation_interval": "1m", "tests": [
            trial(name, series, fires, at) for series, fires in cases]}))
    promtool("test", "rules", *files)


@pytest.mark.only("embedded", "sqlite")  # croupier is not run, so no sanitized run has it
@pytest.mark.takes("promtool")
def test_each_alarm_fires_when_it_should_and_not_otherwise(tmp_path):
    promtool("check", "rules", RULES_FILE)
    assert set(CASES) == {rule["alert"] for rule in RULES}
    try_rules(tmp_path, {name: [(fires, True), (quiet, False)] for name, (fires, quiet) in CASES.items()})


@pytest.mark.only("embedded", "sqlite")  # as above
@pytest.mark.takes("promtool")
def test_a_server_that_was_never_verified_and_one_that_is_gone_are_noticed(tmp_path):
    try_rules(tmp_path, {
        "CroupierLedgerNotVerified": [(mine("process_start_time_seconds", f"-{9 * DAYS}x90"), True)],
        "CroupierDown": [({'up{job="other"}': "1x60"}, True)],
        "CroupierOddsStale": [({f'croupier_odds_age_seconds{{{ME},sport="cricket"}}': "301x60"}, True)]})


@pytest.mark.depends_on()
def test_each_alarm_has_its_section_and_each_section_its_alarm():
    sections = re.findall(r"^## (\w+)\n\nSeverity: (\w+)\.\n\n((?:- .*\n)+)", ALARMS_PAGE.read_text(), re.MULTILINE)
    assert [(name, severity) for name, severity, _ in sections] == [(rule["alert"], rule["labels"]["severity"]) for rule in RULES]
    assert len(sections) == ALARMS_PAGE.read_text().count("\n## ")
    for name, severity, lines in sections:
        assert severity in ("page", "ticket")
        assert re.findall(r"^- \*\*(.+?)\.\*\* .", lines, re.MULTILINE) == ["It means", "Customers notice", "Look at", "Do", "Wake"], name
        assert {other for other in re.findall(r"Croupier[A-Z]\w+", lines)} <= set(CASES), name
    for rule in RULES:
        assert {"summary", "description", "runbook_url"} == set(rule["annotations"])
        assert rule["annotations"]["runbook_url"].endswith(f"/alarms.md#{rule['alert'].lower()}")


# ---- rules and board against a running server --------------------------------------------------------

def board_expressions():
    panels = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def plain(expression):
    """Without what Grafana puts in."""
    for variable, value in {"$job": "croupier", "$instance": ".*", "$__rate_interval": "5m"}.items():
        expression = expression.replace(variable, value)
    return expression


def selectors(expression):
    """(metric, its matchers as (label, operator, value))."""
    for name, matchers in re.findall(r"\b((?:croupier|process)_[a-z0-9_]+)(?:\{([^}]*(?:\[}\][^}]*)*)\})?", expression):
        yield name, re.findall(r'(\w+)(=~|!~|!=|=)"([^"]*)"', matchers)


@pytest.mark.depends_on("odds", "platform")
@pytest.mark.takes("promtool")
def test_every_metric_and_label_of_rules_and_board_is_a_real_one(house):
    house.publish("cricket", [row(1)], {1: match_odds()})
    house.get("/api/v1/cricket/events/1", key=house.customer.key)
    house.run("wallet", "verify")  # of which there is nothing to see before
    eventually(lambda: verifications(house)["whole"])
    scrape = house.request("GET", "/metrics", address=house.operator_address).body.decode()
    promtool("check", "metrics", input=scrape)
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", scrape, re.MULTILINE))
    names = {name + suffix for name, kind in types.items() for suffix in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",))}
    labels = {}  # of each metric: of each label: its values
    for name, pairs in re.findall(r"^(\w+)\{(.*)\} \S+$", scrape, re.MULTILINE):
        for label, value in re.findall(r'(\w+)="([^"]*)"', pairs):
            labels.setdefault(name, {}).setdefault(label, set()).add(value)
    documented = (ROOT / "docs" / "metrics.md").read_text()
    for expression in [rule["expr"] for rule in RULES] + [plain(expression) for expression in board_expressions()]:
        for name, matchers in selectors(expression):
            assert name in names, f"{name} of {expression}"
            for label, operator, value in matchers:
                if label in ("job", "instance"):
                    continue
                [line] = [line for line in documented.splitlines() if line.startswith(f"| `{re.sub('_bucket$', '', name)}`")]
                assert f"`{label}`" in line, f"{label} of {name}"
                for one in value.split("|") if "[" not in value and "." not in value else []:
                    assert one in labels.get(name, {}).get(label, ()) or f'{label}="{one}"' in documented, f"{label}={one} of {name}"


@pytest.mark.only("embedded", "sqlite")  # as above
@pytest.mark.takes("promtool")
def test_the_board_is_sound(tmp_path):
    assert BOARD["uid"] and BOARD["schemaVersion"] >= 36 and BOARD["id"] is None
    assert [variable["name"] for variable in BOARD["templating"]["list"]] == ["datasource", "job", "instance"]
    rows = [panel["title"] for panel in BOARD["panels"] if panel["type"] == "row"]
    assert rows == ["Traffic", "Errors", "Denials", "Age of odds", "Waiting polls", "Ledger", "Casino and providers", "Stores", "Process"]
    identities = [panel["id"] for panel in BOARD["panels"]]
    assert len(set(identities)) == len(identities)
    taken = set()
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells
        if panel["type"] == "row":
            continue
        assert panel["title"] and panel["description"] and panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        for target in panel["targets"]:
            assert target["legendFormat"] and 'job="$job"' in target["expr"] and 'instance=~"$instance"' in target["expr"]
    recorded = [{"record": f"board:{n}", "expr": plain(expression)} for n, expression in enumerate(board_expressions())]
    (tmp_path / "board.yml").write_text(json.dumps({"groups": [{"name": "board", "rules": recorded}]}))
    assert f"{len(recorded)} rules found" in promtool("check", "rules", tmp_path / "board.yml")
