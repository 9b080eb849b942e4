"""`croupier provider` and `croupier game`, as an operator and as a script would use them."""

import json
import os

import pytest

from croupier import Service
from wallet_model import add_games, add_player

pytestmark = [pytest.mark.depends_on("platform"), pytest.mark.threadless]

GAME = {"id": "book-of-sand", "name": "Book of Sand", "provider": "acme", "category": "slots",
        "features": ["free-spins"], "rtp_bps": 9612, "volatility": "high", "thumbnail_url": None,
        "demo": True, "currencies": ["EUR", "JPY"], "languages": ["en"], "devices": ["desktop"]}
SECRET = "a-secret-of-the-provider-0123456789"


@pytest.fixture
def platform(make_service):
    return make_service()


def add_provider(platform, identity="acme", *options, secret=SECRET + "\n"):
    done = platform.run("provider", "add", identity, "--name", identity.title(), "--launch-url",
                        f"https://{identity}.example/play", "--secret", "-", *options, "--json",
                        input=secret)
    return json.loads(done.text)


def refused(platform, *arguments, status=1, input=None):
    done = platform.run(*arguments, status=status, input=input)
    assert done.text == ""
    assert done.errors.count("\n") == 1, done.errors
    return done.errors


def test_migrate_makes_the_key_of_secrets_once_and_privately(platform):
    key = platform.configuration.parent / "secrets.key"
    assert key.stat().st_mode & 0o7777 == 0o600
    before = key.read_bytes()
    assert len(before) == 32
    assert platform.ask("migrate")["secrets_key_made"] is False
    assert key.read_bytes() == before


def test_a_key_that_secrets_are_stored_under_is_not_replaced_unasked(platform):
    key = platform.configuration.parent / "secrets.key"
    add_provider(platform)
    platform.run("check")
    kept = key.read_bytes()
    key.unlink()
    assert platform.ask("migrate")["secrets_key_made"] is False
    said = platform.run("migrate").errors
    assert f"{key} is not there" in said and "copy it from another instance or a backup" in said and "--new-secrets-key" in said
    said = refused(platform, "provider", "set", "acme", "--secret", "-", input=SECRET)
    assert "copy it from another instance or a backup; for a new store, run: croupier migrate" in said
    assert not key.exists()
    assert platform.ask("migrate", "--new-secrets-key")["secrets_key_made"] is True
    checks = {check["check"]: check for check in json.loads(platform.run("check", "--json", status=1).text)}
    assert "the secret of provider acme was stored under" in checks["secrets key"]["message"]
    key.write_bytes(kept)
    platform.run("check")


def test_a_secret_is_not_stored_under_a_key_that_does_not_open_the_others(platform):
    key = platform.configuration.parent / "secrets.key"
    adding = ["provider", "add", "bravo", "--name", "B", "--launch-url", "https://b.example/", "--secret", "-"]
    add_provider(platform)
    kept = key.read_bytes()
    key.write_bytes(bytes(32))
    for arguments in (adding, ["provider", "set", "acme", "--secret", "-"], ["provider", "secret", "add", "acme"]):
        said = refused(platform, *arguments, input=SECRET)
        assert f"{key} is not the key that the secret of provider acme was stored under; copy the right file" in said
    platform.run("provider", "set", "acme", "--name", "Acme 2")
    key.write_bytes(kept)
    platform.run(*adding, input=SECRET)
    platform.run("check")
    # The way that operations.md gives after a loss of the key.
    key.unlink()
    assert "the secrets key of all instances" in platform.run("migrate", "--new-secrets-key").errors
    for one in ("acme", "bravo"):
        platform.run("provider", "disable", one)
    for one in ("acme", "bravo"):
        platform.run("provider", "set", one, "--secret", "-", input=SECRET)
        platform.run("provider", "enable", one)
    platform.run("check")


def test_a_provider_is_added_shown_changed_and_disabled(platform):
    added = add_provider(platform, "acme", "--return-url", "https://back.example/")
    assert added == {"id": "acme", "name": "Acme", "launch_url": "https://acme.example/play",
                     "launch_endpoint": None, "return_url": "https://back.example/", "audience": "acme", "cidrs": [],
                     "blocked_countries": [], "sandbox": False,
                     "enabled": True,
                     "secrets": [{"kid": "first", "signs": True, "added_at": added["secrets"][0]["added_at"]}],
                     "created_at": added["created_at"]}
    assert platform.ask("provider", "show", "acme") == added
    changed = platform.ask("provider", "set", "acme", "--name", "Acme Two", "--no-return-url",
                           "--audience", "acme-prod")
    assert changed == dict(added, name="Acme Two", return_url=None, audience="acme-prod")
    blocked = platform.ask("provider", "set", "acme", "--blocked-country", "US,GB", "--blocked-country", "DE")
    assert blocked == dict(changed, blocked_countries=["US", "GB", "DE"])
    assert "not offered in" in platform.run("provider", "show", "acme").text
    assert "blocked_countries: 'UK' is no code" in refused(platform, "provider", "set", "acme", "--blocked-country", "UK", status=2)
    assert platform.ask("provider", "set", "acme", "--no-blocked-countries") == changed
    assert platform.ask("provider", "disable", "acme")["enabled"] is False
    assert platform.ask("provider", "enable", "acme")["enabled"] is True
    add_provider(platform, "abba")
    assert [each["id"] for each in platform.ask("provider", "list")] == ["abba", "acme"]


def test_a_provider_has_a_launch_url_or_an_endpoint_and_either_replaces_the_other(platform):
    endpoint = "https://api.oasis.example/launch?v=1"
    added = platform.ask("provider", "add", "oasis", "--name", "Oasis", "--launch-endpoint", endpoint, "--secret", "-",
                         input=SECRET)
    assert (added["launch_url"], added["launch_endpoint"]) == (None, endpoint)
    assert platform.ask("provider", "set", "oasis", "--name", "Two")["launch_endpoint"] == endpoint
    changed = platform.ask("provider", "set", "oasis", "--launch-url", "https://play.oasis.example/")
    assert (changed["launch_url"], changed["launch_endpoint"]) == ("https://play.oasis.example/", None)
    changed = platform.ask("provider", "set", "oasis", "--launch-endpoint", "http://127.0.0.1:1234/")
    assert (changed["launch_url"], changed["launch_endpoint"]) == (None, "http://127.0.0.1:1234/")
    assert "http://127.0.0.1:1234/" in platform.run("provider", "show", "oasis").text
    assert "launch_endpoint: must be https" in refused(platform, "provider", "set", "oasis", "--launch-endpoint",
                                                       "http://api.oasis.example/", status=2)
    platform.run("provider", "set", "oasis", "--launch-endpoint", endpoint, "--launch-url", endpoint, status=2)
    platform.run("provider", "add", "none", "--name", "None", "--secret", "-", input=SECRET, status=2)


def test_a_secret_is_read_from_standard_input_alone_and_never_shown_nor_stored_as_it_is(platform):
    add_provider(platform)
    for arguments in (["provider", "list"], ["provider", "show", "acme"],
                      ["provider", "list", "--json"], ["provider", "show", "acme", "--json"]):
        done = platform.run(*arguments)
        assert SECRET not in done.text + done.errors
    for name in os.listdir(platform.directory):
        path = platform.directory / name
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), name
    given = ["provider", "add", "b", "--name", "B", "--launch-url", "https://b.example/", "--secret"]
    assert "standard input" in platform.run(*given, "hush", status=2).errors
    assert "1 to 512 bytes" in refused(platform, *given, "-", input="\n")
    assert "1 to 512 bytes" in refused(platform, *given, "-", input="x" * 513)
    assert "needs --secret - (see" in platform.run(*given[:-1], status=2).errors
    errors = platform.run("provider", "add", "b", "--name", "B", status=2).errors
    assert "needs --launch-url (or --launch-endpoint) and --secret - (see" in errors


@pytest.mark.parametrize("url, noted", [
    ("http://play.example/", True), ("http://127.0.0.1.example/", True), ("https://play.example/", False),
    ("http://127.0.0.1:8000/", False), ("http://[::1]/", False), ("http://localhost:1/", False)])
def test_a_launch_url_that_others_can_read_is_noted(platform, url, noted):
    long = SECRET * 4
    added = platform.run("provider", "add", "acme", "--name", "A", "--launch-url", url, "--secret", "-", input=long)
    assert ("not https://" in added.errors) == noted
    changed = platform.run("provider", "set", "acme", "--launch-url", url)
    assert ("not https://" in changed.errors) == noted
    assert platform.run("provider", "set", "acme", "--name", "B").errors == ""


def test_a_secret_needs_the_key_file(platform):
    (platform.configuration.parent / "secrets.key").chmod(0o644)
    arguments = ["provider", "add", "acme", "--name", "A", "--launch-url", "https://a/", "--secret", "-"]
    assert "chmod 600" in refused(platform, *arguments, input=SECRET)

    def checked():
        [told] = [one for one in json.loads(platform.run("check", "--json", status=1).text) if one["check"] == "secrets key"]
        return told["message"], told["remedy"]

    message, remedy = checked()
    assert "chmod 600" in message and "keep what is in it" in remedy
    # The remedy is the cause's, whatever the path is called.
    (platform.directory / "secrets.key").chmod(0o600)
    (platform.directory / "secrets.key").write_bytes(b"short")
    message, remedy = checked()
    assert "is not a key" in message and remedy == (
        "copy the right file from another instance or a backup, and let the user that croupier runs as read it;"
        " for a new store `croupier migrate` makes it")
    (platform.directory / "secrets.key").unlink()
    assert "croupier migrate" in refused(platform, *arguments, input=SECRET)
    message, remedy = checked()
    assert "there is no such file" in message and "for a new store" in remedy


@pytest.mark.parametrize("identity, url, what", [
    ("Acme", "https://a.example/", "id: must be"),
    ("a_b", "https://a.example/", "id: must be"),
    ("a" * 65, "https://a.example/", "id: must be"),
    ("acme", "ftp://a.example/", "launch_url: must be"),
    ("acme", "https://a.example/#top", "fragment"),
])
def test_a_provider_that_is_not_acceptable_is_refused(platform, identity, url, what):
    assert what in refused(platform, "provider", "add", identity, "--name", "A", "--launch-url", url,
                           "--secret", "-", input=SECRET, status=2)


def test_an_unknown_provider_or_game_is_said_to_be(platform):
    for verb in ("show", "enable", "disable"):
        assert "there is no provider 'nobody'" in refused(platform, "provider", verb, "nobody")
        assert "there is no game 'nothing'" in refused(platform, "game", verb, "nothing")
    add_provider(platform)
    assert "there is a provider 'acme' already" in refused(
        platform, "provider", "add", "acme", "--name", "A", "--launch-url", "https://a/", "--secret", "-",
        input=SECRET)


def test_games_are_imported_listed_and_imported_again(platform):
    add_provider(platform)
    games = [GAME, dict(GAME, id="anubis", name="Anubis")]
    imported = platform.ask("game", "import", "-", input=json.dumps(games))
    assert imported == {"added": 2, "changed": 0, "unchanged": 0}
    listed = platform.ask("game", "list")
    assert [each["id"] for each in listed] == ["anubis", "book-of-sand"]
    assert listed[1] == dict(GAME, blocked_countries=[], enabled=True, updated_at=listed[1]["updated_at"])
    assert platform.ask("game", "show", "anubis") == listed[0]
    platform.run("game", "disable", "anubis")
    (platform.directory / "games.json").write_text(json.dumps([dict(games[1], rtp_bps=None), GAME]))
    assert platform.ask("game", "import", "games.json") == {"added": 0, "changed": 1, "unchanged": 1}
    assert platform.ask("game", "show", "anubis")["enabled"] is False
    again = platform.run("game", "list", "--json").text
    assert platform.ask("game", "import", "-", input=again) == {"added": 0, "changed": 0, "unchanged": 2}


def test_a_mistake_is_told_by_line_and_column_and_nothing_is_imported(platform):
    add_provider(platform)
    text = json.dumps([GAME])[:-1] + ',\n {"id": "second", "name": "S", "provider": "acme",\n  "colour": "red"}]'
    assert "standard input:3:3: " in refused(platform, "game", "import", "-", input=text)
    assert "standard input:1:2: not JSON" in refused(platform, "game", "import", "-", input="[}")
    assert "missing.json" in refused(platform, "game", "import", "missing.json")
    unknown = json.dumps([GAME, dict(GAME, id="x", provider="nobody")])
    assert "there is no provider 'nobody'" in refused(platform, "game", "import", "-", input=unknown)
    assert platform.ask("game", "list") == []


def test_games_are_allowed_all_or_by_name(platform):
    add_provider(platform)
    platform.run("game", "import", "-", input=json.dumps([GAME, dict(GAME, id="anubis")]))
    customer = platform.add_customer(options=("--casino",), key=False).id
    assert platform.ask("game", "allow", customer, "book-of-sand", "anubis", "anubis") == {
        "customer": customer, "games": ["anubis", "book-of-sand"]}
    assert platform.ask("game", "allow", customer, "all") == {"customer": customer, "games": "all"}
    # A name is answered with the id of the one customer that has it.
    long, other = "Acme of the Islands, Betting and Gaming", "Acme of the Mountains, Betting and Gaming"
    named = [platform.ask("customer", "add", long)["id"] for _ in range(2)]
    for verb in (("key", "issue"), ("key", "list"), ("customer", "show")):
        assert f"there is no customer 'Acme'; give its id: {customer}" in refused(platform, *verb, "Acme")
        assert "give its id, cus_…" in refused(platform, *verb, long)
    platform.run("customer", "set", named[0], "--name", other)
    assert f"'{other}'; give its id: {named[0]}" in refused(platform, "key", "issue", other)
    assert "there is no game 'chess'" in refused(platform, "game", "allow", customer, "anubis", "chess")
    assert "there is no customer 'cus_x'" in refused(platform, "game", "allow", "cus_x", "all")
    for wrong in ("", "Chess", "a b"):
        assert "is not a game id" in refused(platform, "game", "allow", customer, wrong, status=2)
    assert "not both" in platform.run("game", "allow", customer, "all", "anubis", status=2).errors
    plain = platform.add_customer("Plain", key=False).id
    assert "customer set" in platform.run("game", "allow", plain, "anubis").errors


def test_what_a_customer_may_use_can_be_read_again(platform):
    add_provider(platform)
    platform.run("game", "import", "-", input=json.dumps([GAME, dict(GAME, id="anubis")]))
    customer = platform.add_customer(options=("--casino",), key=False).id
    other = platform.add_customer("Other", key=False).id
    allowed = lambda: platform.ask("game", "allowed", customer)
    assert allowed() == {"customer": customer, "games": "all"}  # no one has said anything
    assert platform.run("game", "allowed", customer).text == f"{customer} may use every game.\n"
    platform.run("game", "allow", customer, "book-of-sand", "anubis")
    platform.run("game", "allow", other, "anubis")
    assert allowed() == {"customer": customer, "games": ["anubis", "book-of-sand"]}
    assert platform.run("game", "allowed", customer).text.splitlines() == [
        f"{customer} may use 2 games.", "anubis", "book-of-sand"]
    platform.run("customer", "set", customer, "--no-casino")
    assert "customer set" in platform.run("game", "allowed", customer).errors
    platform.run("customer", "set", customer, "--casino")
    assert allowed()["games"] == ["anubis", "book-of-sand"]
    platform.run("game", "allow", customer, "all")
    assert allowed()["games"] == "all"
    assert "there is no customer 'cus_x'" in refused(platform, "game", "allowed", "cus_x")
    assert "there is no customer" in refused(platform, "game", "allowed", "c" * 100)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A stopped service with launches: alice's in two currencies, bob's, and a demo."""
    service = Service(tmp_path_factory.mktemp("played"))
    try:
        service.customer = service.add_customer("Casino", options=["--casino"])
        add_games(service, "book")
        service.run("game", "import", "-", input=json.dumps([dict(GAME, id="sand")]))
        service.start()
        add_player(service, service.customer, "warm")

        def launch(**body):
            body = {"mode": "real", "player_reference": "alice", "currency": "EUR", **body}
            answer = service.request("POST", "/api/v1/casino/games/sand/launch", key=service.customer.key,
                                     headers={"Content-Type": "application/json"},
                                     body=json.dumps({name: value for name, value in body.items() if value}).encode())
            assert answer.status == 200, answer
            return answer.json()
        service.launches = [launch(), launch(), launch(currency="JPY"), launch(player_reference="bob")]
        service.demo = launch(mode="demo", player_reference=None, currency=None)
        service.stop()
        yield service
    finally:
        service.stop()


def test_a_player_is_found_by_any_of_its_names(played):
    first, second, yen, bob = played.launches
    shown = played.ask("player", "show", bob["player_id"])
    assert shown["customer"] == played.customer.id and shown["player_reference"] == "bob"
    assert (shown["currency"], shown["currency_exponent"], shown["balance_minor"], shown["entries"]) == ("EUR", 2, 0, 0)
    assert shown["blocked_at"] is None
    assert [launch["launch_id"] for launch in shown["launches"]] == [bob["launch_id"]]
    told = shown["launches"][0]
    assert (told["provider"], told["game_id"]) == ("acme", "sand")
    assert played.ask("player", "show", played.customer.id, "bob") == shown
    assert played.ask("player", "show", "--launch", bob["launch_id"]) == shown
    assert f"player show --launch {bob['launch_id']}" in played.run("player", "show", bob["launch_id"], status=2).errors
    assert played.ask("player", "show", "--provider", "acme", "--", told["provider_player_id"]) == shown
    alice = played.ask("player", "show", "--launch", first["launch_id"])
    assert alice["player_id"] == first["player_id"] == second["player_id"] != yen["player_id"]
    assert [launch["launch_id"] for launch in alice["launches"]] == [second["launch_id"], first["launch_id"]]
    text = played.run("player", "show", first["player_id"]).text
    assert "blocked    no\n" in text and "1970" not in text
    assert "balance    0.00 EUR" in text and first["launch_id"] in text and alice["launches"][0]["provider_player_id"] in text


def test_who_cannot_be_found_is_said(played):
    alice, yen = played.launches[0]["player_id"], played.launches[2]["player_id"]
    said = refused(played, "player", "show", played.customer.id, "alice")
    assert f"{alice} (EUR), {yen} (JPY)" in said
    assert "player show CUSTOMER bob" in played.run("player", "show", "bob", status=2).errors
    assert "there is no player 'ply_none'" in refused(played, "player", "show", "ply_none")
    assert "has no player 'eve'" in refused(played, "player", "show", played.customer.id, "eve")
    assert "there is no launch 'lau_none'" in refused(played, "player", "show", "--launch", "lau_none")
    assert "is a demo" in refused(played, "player", "show", "--launch", played.demo["launch_id"])
    assert "no player was launched" in refused(played, "player", "show", "--provider", "acme", "x" * 22)
    for words in ((), ("--launch", "a", "b"), ("--provider", "acme"), ("--provider", "acme", "b", "c"), ("--launch", "a", "--provider", "b")):
        assert "give PLAYER" in refused(played, "player", "show", *words, status=2)
    assert "there is no player 'ply_none'" in refused(played, "player", "block", "ply_none")


def test_blocking_is_told_and_can_be_repeated(played):
    player = played.launches[3]["player_id"]
    assert played.run("player", "block", player).text == f"{player} is blocked.\n"
    blocked = played.ask("player", "show", player)["blocked_at"]
    assert played.ask("player", "block", player)["blocked_at"] == blocked is not None
    assert played.ask("player", "unblock", player, "--early", "--reason", "over")["blocked_at"] is None
    assert played.ask("player", "unblock", player, "--early", "--reason", "over")["blocked_at"] is None


def test_an_import_keeps_the_countries_of_a_game_where_it_does_not_name_them(platform):
    add_provider(platform)
    platform.run("game", "import", "-", input=json.dumps([GAME, dict(GAME, id="two", blocked_countries=["US"])]))
    assert platform.ask("game", "show", "two")["blocked_countries"] == ["US"]
    changed = platform.ask("game", "set", "book-of-sand", "--blocked-country", "GB")
    assert (changed["blocked_countries"], changed["enabled"]) == (["GB"], True)
    assert platform.ask("game", "set", "book-of-sand", "--blocked-country", "GB") == changed  # nothing is written
    assert platform.ask("game", "disable", "book-of-sand")["blocked_countries"] == ["GB"]
    platform.run("game", "import", "-", input=json.dumps([dict(GAME, name="Sand"), dict(GAME, id="two", blocked_countries=[])]))
    assert platform.ask("game", "show", "book-of-sand")["blocked_countries"] == ["GB"]
    assert platform.ask("game", "show", "two")["blocked_countries"] == []
    said = refused(platform, "game", "import", "-", input=json.dumps([dict(GAME, blocked_countries=["UK"])]))
    assert "blocked_countries: must be codes of ISO 3166-1" in said
    assert "is no code" in refused(platform, "game", "set", "two", "--blocked-country", "xx", status=2)
    assert platform.ask("game", "set", "book-of-sand", "--no-blocked-countries")["blocked_countries"] == []
    last, *_ = platform.ask("audit", "list", "--object", "book-of-sand")
    assert (last["command"], last["before"], last["after"]) == (
        "game set", {"blocked_countries": "GB"}, {"blocked_countries": ""})


def test_a_secret_is_replaced_with_an_overlap(platform):
    add_provider(platform)
    first, = platform.ask("provider", "secret", "list", "acme")
    assert (first["kid"], first["signs"]) == ("first", True) and first["added_at"] is not None
    assert "the only secret" in refused(platform, "provider", "secret", "retire", "acme", "first")
    done = platform.run("provider", "secret", "add", "acme", "--json", input="the-second-secret-of-the-provider-01\n")
    newest, older = json.loads(done.text)
    assert (newest["signs"], older["signs"], older["kid"]) == (True, False, "first")
    assert len(newest["kid"]) == 8 and "second-secret" not in done.text + done.errors
    assert platform.ask("provider", "show", "acme")["secrets"] == [newest, older]
    assert f"{newest['kid']}, until it is retired: first" in platform.run("provider", "show", "acme").text
    assert "two secrets already; retire 'first' first" in refused(platform, "provider", "secret", "add", "acme", input=SECRET)
    assert "has no secret 'nothing'" in refused(platform, "provider", "secret", "retire", "acme", "nothing")
    assert platform.ask("provider", "secret", "retire", "acme", "first") == [newest]
    assert "no provider 'nobody'" in refused(platform, "provider", "secret", "list", "nobody")
    for words in (("add", "acme", "kid"), ("retire", "acme"), ("list", "acme", "kid"), ("renew", "acme")):
        refused(platform, "provider", "secret", *words, status=2)
    assert "1 to 512 bytes" in refused(platform, "provider", "secret", "add", "acme", input="")
    # The audit says that they changed, and not what they are.
    said = platform.platform.execute("SELECT after FROM audit_trail WHERE object = 'acme' ORDER BY number")
    assert len(said) == 3 and all(secret in said[1][0] for secret in ('"secret":"not shown"', '"older_secret":"not shown"'))
