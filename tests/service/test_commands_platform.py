"""`croupier migrate`, `customer`, `key` and `ip`, as an operator and as a script would use them."""

import json
import os
import pwd
import re
import subprocess

import pytest

import engines
from croupier import BINARY, PATIENCE, REPORT, STORE_TIMEOUT_MS, at_a_terminal, sanitizer_environment

pytestmark = [pytest.mark.depends_on("platform"), pytest.mark.threadless]

CUSTOMER_ID = re.compile(r"cus_[0-9A-Za-z]{16}")
KEY_ID = re.compile(r"key_[0-9A-Za-z]{16}")
KEY = re.compile(r"crk_[0-9A-Za-z]{36}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


class Shell:
    """A directory with a platform store, named by the environment alone: no configuration file."""

    def __init__(self, directory, platform=None):
        self.directory = directory
        self.platform = platform or engines.platform_store(directory)
        self.environment = sanitizer_environment()
        self.environment["CROUPIER_PLATFORM_STORE"] = self.platform.uri
        self.environment["CROUPIER_PLATFORM_TIMEOUT_MS"] = STORE_TIMEOUT_MS
        self.environment["CROUPIER_CASINO_SECRETS_KEY_FILE"] = f"{directory}/secrets.key"

    def run(self, *arguments, status=0, **options):
        done = subprocess.run([str(BINARY), *arguments], capture_output=True, text=True, cwd=self.directory,
                              env=self.environment, timeout=60 * PATIENCE, stdin=subprocess.DEVNULL, **options)
        assert not REPORT.search(done.stderr), done.stderr
        assert done.returncode == status, (arguments, done)
        return done

    def ask(self, *arguments):
        done = self.run(*arguments, "--json")
        assert done.stderr == ""
        return json.loads(done.stdout)

    def refused(self, *arguments, status=1):
        """The one line of a refusal, without the command's name before it. Status 1 is what the stores refuse, 2 a
        word of the line that is not what it must be."""
        done = self.run(*arguments, status=status)
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1 and done.stderr.endswith("\n"), done.stderr
        name = "croupier " + " ".join(arguments[:2]) + ": "
        assert done.stderr.startswith(name) or done.stderr.startswith("croupier migrate: "), done.stderr
        return done.stderr[len(name):-1]


@pytest.fixture
def unmade(tmp_path):
    shell = Shell(tmp_path)
    shell.platform.make()
    yield shell
    shell.platform.remove()


@pytest.fixture
def shell(service):
    return Shell(service.directory, service.platform)  # which is migrated


# ---- usage --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments, words", [
    (("customer", "add", "Acme", "--rate", "often"), "not a rate"),
    (("customer", "set", "cus_1", "--sports", "chess"), "not a sport"),
    (("customer", "set", "cus_1", "--cidr", "192.0.2.1/24"), "did you mean 192.0.2.0/24"),
    (("ip", "add", "localhost"), "not one exact IP address"),
    (("ip", "set", "192.0.2.1", "--rate", "often"), "not a rate"),
    (("key", "issue", "cus_1", "--expires", "tomorrow"), "not a time"),
    (("key", "revoke", "nonsense"), "that is no key"),
    (("provider", "set", "acme", "--launch-url", "nowhere"), "launch_url: must be http:// or https://"),
    (("feed", "interest", "chess"), "not a sport"),
])
def test_a_value_that_is_malformed_is_usage_whatever_the_stores_hold(tmp_path, arguments, words):
    shell = Shell(tmp_path)
    shell.environment["CROUPIER_PLATFORM_STORE"] = f"sqlite:{tmp_path}/nowhere.db"
    shell.environment["CROUPIER_ODDS_STORE"] = f"embedded:{tmp_path}/nowhere"
    assert words in shell.refused(*arguments, status=2)
    assert not os.listdir(tmp_path)


# ---- migrate ------------------------------------------------------------------------------------------


def test_migrate_makes_the_store_and_may_be_repeated(unmade):
    first = unmade.ask("migrate")
    assert first["before"] == 0 and first["after"] >= 1
    if unmade.platform.uri.startswith("sqlite:"):
        assert unmade.platform.path.stat().st_mode & 0o027 == 0
    second = unmade.ask("migrate")
    assert second["before"] == second["after"] == first["after"]
    assert "nothing to do" in unmade.run("migrate").stdout


@pytest.mark.parametrize("command", [["customer", "list"], ["customer", "add", "Acme"], ["key", "list", "cus_1"],
                                     ["ip", "list"], ["ip", "add", "192.0.2.1"]])
def test_a_store_that_is_not_migrated_is_refused(unmade, command):
    message = unmade.refused(*command)
    assert unmade.platform.where in message and "run: croupier migrate" in message


# ---- customers ----------------------------------------------------------------------------------------


def test_add_prints_the_id_alone_and_says_what_comes_next(shell):
    done = shell.run("customer", "add", "Acme Sportsbook", "--cidr", "203.0.113.0/24")
    assert CUSTOMER_ID.fullmatch(done.stdout.strip())
    assert f"croupier key issue {done.stdout.strip()}" in done.stderr


def test_a_customer_without_blocks_is_added_with_a_note(shell):
    done = shell.run("customer", "add", "Acme")
    assert "denied everywhere" in done.stderr
    assert f"customer set {done.stdout.strip()} --cidr" in done.stderr


def test_a_customer_shows_what_it_was_given(shell):
    made = shell.ask("customer", "add", "Café \"Zür\"", "--cidr", "203.0.113.0/24", "--cidr=2001:db8::/32",
                     "--sports", "tennis,cricket", "--rate", "600/60", "--casino")
    assert CUSTOMER_ID.fullmatch(made["id"]) and TIME.fullmatch(made["created_at"])
    assert {name: value for name, value in made.items() if name not in ("id", "created_at")} == {
        "name": "Café \"Zür\"", "enabled": True, "cidrs": ["203.0.113.0/24", "2001:db8::/32"],
        "sports": ["cricket", "tennis"], "rate": {"requests": 600, "window_seconds": 60}, "casino": True, "sandbox": False, "keys": 0}
    assert shell.ask("customer", "show", made["id"]) == made
    assert shell.ask("customer", "list") == [made]
    plain = shell.run("customer", "show", made["id"]).stdout
    assert "Café \"Zür\"" in plain and "203.0.113.0/24 2001:db8::/32" in plain and "600/60" in plain


def test_defaults_are_all_sports_no_rate_no_casino(shell):
    made = shell.ask("customer", "add", "Acme")
    assert (made["sports"], made["rate"], made["casino"], made["cidrs"]) == ("all", None, False, [])
    assert shell.ask("customer", "add", "None", "--sports", "none", "--rate", "off")["sports"] == []


def test_set_changes_what_is_given_and_leaves_the_rest(shell):
    made = shell.ask("customer", "add", "Acme", "--cidr", "203.0.113.0/24", "--rate", "5/1", "--casino")
    identity = made["id"]
    expected = dict(made)
    for options, change in [
        (["--name", "Zenith"], {"name": "Zenith"}),
        (["--cidr", "198.51.100.7", "--cidr", "10.0.0.0/8"], {"cidrs": ["198.51.100.7/32", "10.0.0.0/8"]}),
        (["--sports", "football"], {"sports": ["football"]}),
        (["--rate", "10/60"], {"rate": {"requests": 10, "window_seconds": 60}}),
        (["--rate", "off"], {"rate": None}),
        (["--no-casino"], {"casino": False}),
        (["--casino", "--sports", "all"], {"casino": True, "sports": "all"}),
        (["--no-cidrs"], {"cidrs": []}),
    ]:
        expected.update(change)
        assert shell.ask("customer", "set", identity, *options) == expected
        assert shell.ask("customer", "show", identity) == expected
    expected["enabled"] = False
    assert shell.ask("customer", "disable", identity) == expected
    assert shell.ask("customer", "disable", identity) == expected
    assert "is enabled" in shell.run("customer", "enable", identity).stdout


@pytest.mark.parametrize("options, words", [
    (["--cidr", "203.0.113.1/24"], "did you mean 203.0.113.0/24"),
    (["--cidr", "example.com"], "not an address"),
    (["--sports", "Cricket"], "'Cricket' is not a sport"),
    (["--rate", "0/1"], "not a rate"),
    (["--rate", "1/86401"], "not a rate"),
    (["--rate", "1000000001/1"], "not a rate"),
    (["--name", ""], "1 to 128 bytes"),
    (["--name", "n" * 129], "1 to 128 bytes"),
    (["--name", "a\tb"], "control characters"),
    (["--casino", "--no-casino"], "contradict"),
    (["--cidr", "-c", "my.conf"], "--cidr needs a value"),
    (["--cidr", "10.0.0.0/8", "--no-cidrs"], "contradict"),
    ([], "nothing to set"),
])
def test_set_refuses_and_changes_nothing(shell, options, words):
    made = shell.ask("customer", "add", "Acme", "--cidr", "203.0.113.0/24")
    assert words in shell.refused("customer", "set", made["id"], *options, status=2)
    assert shell.ask("customer", "show", made["id"]) == made


@pytest.mark.parametrize("command", [["show"], ["enable"], ["disable"], ["set", "--rate", "off"]])
def test_an_unknown_customer_is_one_clear_line(shell, command):
    assert shell.refused("customer", command[0], "cus_nobody", *command[1:]) == "there is no customer 'cus_nobody'"


def test_lists_are_tables_for_people(shell):
    shell.run("customer", "add", "Acme", "--cidr", "203.0.113.0/24", "--cidr", "10.0.0.0/8", "--rate", "5/1")
    shell.run("customer", "add", "Zenith", "--sports", "none")
    header, acme, zenith = shell.run("customer", "list").stdout.splitlines()
    assert header.split()[:3] == ["ID", "NAME", "ENABLED"]
    assert "203.0.113.0/24 and 1 more" in acme and "5/1" in acme
    assert "none" in zenith
    assert header.index("NAME") == acme.index("Acme") == zenith.index("Zenith")


def test_a_row_that_makes_no_sense_is_shown_and_mended_only_whole(shell):
    made = shell.ask("customer", "add", "Acme", "--cidr", "203.0.113.0/24", "--rate", "5/1")
    shell.platform.execute("UPDATE customer SET sports = 'chess'")
    assert shell.ask("customer", "show", made["id"])["usable"] is False
    assert "unusable" in shell.run("customer", "list").stdout
    assert "cannot be read" in shell.refused("customer", "enable", made["id"])
    assert "cannot be read" in shell.refused("customer", "set", made["id"], "--sports", "all")
    mended = shell.ask("customer", "set", made["id"], "--name", "Acme", "--sports", "all", "--rate", "5/1",
                       "--cidr", "203.0.113.0/24")
    assert mended == made


def test_changes_at_once_lose_nothing(shell):
    identity = shell.run("customer", "add", "Acme").stdout.strip()
    commands = [["--name", "Zenith"], ["--rate", "5/1"], ["--sports", "tennis"], ["--casino"],
                ["--cidr", "10.0.0.0/8"]]
    running = [subprocess.Popen([str(BINARY), "customer", "set", identity, *options], env=shell.environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for options in commands]
    for process in running:
        _, errors = process.communicate(timeout=60 * PATIENCE)
        assert process.returncode == 0, errors
    found = shell.ask("customer", "show", identity)
    assert (found["name"], found["rate"], found["sports"], found["casino"], found["cidrs"]) == (
        "Zenith", {"requests": 5, "window_seconds": 1}, ["tennis"], True, ["10.0.0.0/8"])


def test_a_block_is_added_and_removed_and_the_others_stay(shell):
    made = shell.ask("customer", "add", "Acme", "--cidr", "203.0.113.0/24", "--cidr", "198.51.100.7")
    def blocks(*options):
        return shell.ask("customer", "set", made["id"], *options)["cidrs"]
    assert blocks("--add-cidr", "192.0.2.0/28", "--add-cidr", "203.0.113.0/24") \
        == ["203.0.113.0/24", "198.51.100.7/32", "192.0.2.0/28"]
    assert blocks("--remove-cidr", "203.0.113.0/24", "--add-cidr", "2001:db8::/32", "--rate", "5/1") \
        == ["198.51.100.7/32", "192.0.2.0/28", "2001:db8::/32"]
    assert blocks("--remove-cidr", "10.0.0.0/8") == ["198.51.100.7/32", "192.0.2.0/28", "2001:db8::/32"]
    assert blocks("--no-cidrs", "--add-cidr", "192.0.2.1") == ["192.0.2.1/32"]
    assert "CIDR" in shell.refused("customer", "set", made["id"], "--remove-cidr", "here", status=2)


# ---- who changed what ---------------------------------------------------------------------------------

def user():
    with open("/proc/self/loginuid", encoding="ascii") as file:
        login = int(file.read())
    return pwd.getpwuid(os.getuid() if login == 2**32 - 1 else login).pw_name


def test_the_audit_says_who_changed_what(shell):
    made = shell.ask("customer", "add", "Acme", "--cidr", "203.0.113.0/24")
    shell.run("customer", "set", made["id"], "--remove-cidr", "203.0.113.0/24")
    shell.run("customer", "set", made["id"], "--name", "Acme")  # nothing new
    shell.refused("customer", "disable", "cus_nobody")
    key = shell.ask("key", "issue", made["id"])
    shell.run("ip", "add", "192.0.2.7")
    rows = shell.ask("audit", "list")
    assert [(row["number"], row["command"], row["kind"], row["object"]) for row in rows] == [
        (4, "ip add", "address", "192.0.2.7"), (3, "key issue", "key", key["id"]),
        (2, "customer set", "customer", made["id"]), (1, "customer add", "customer", made["id"])]
    assert {row["who"] for row in rows} == {user()}
    assert (rows[2]["before"], rows[2]["after"]) == ({"cidrs": "203.0.113.0/24"}, {"cidrs": ""})
    assert rows[3]["before"] is None and rows[3]["after"]["name"] == "Acme"
    assert rows[1]["after"]["digest"] == "not shown" and TIME.fullmatch(rows[1]["at"])
    assert shell.ask("audit", "list", "--object", made["id"]) == rows[2:]
    assert shell.ask("audit", "list", "--who", "nobody in particular") == []
    assert shell.ask("audit", "list", "--since", "1h", "--who", user(), "--limit", "2") == rows[:2]
    assert shell.ask("audit", "list", "--before", "3") == rows[2:]
    assert shell.ask("audit", "list", "--since", "2999-01-01") == []
    assert "NUMBER" in shell.run("audit", "list").stdout
    for wrong in (["--limit", "0"], ["--limit", "100001"], ["--before", "-1"], ["--since", "recently"]):
        shell.refused("audit", "list", *wrong, status=2)


# ---- keys ---------------------------------------------------------------------------------------------


@pytest.fixture
def customer(shell):
    return shell.ask("customer", "add", "Acme", "--cidr", "203.0.113.0/24")["id"]


def test_issue_prints_the_key_alone_and_never_again(shell, customer):
    done = shell.run("key", "issue", customer, "--label", "production")
    key = done.stdout.strip()
    assert KEY.fullmatch(key) and done.stdout == key + "\n"
    assert key not in done.stderr
    listed = shell.run("key", "list", customer)
    assert key[:8] in listed.stdout and key not in listed.stdout
    assert "none" not in listed.stdout  # without a list of its own it may be used wherever its customer may call from
    assert key[8:].encode() not in shell.platform.contents()


def test_issue_as_json(shell, customer):
    made = shell.ask("key", "issue", customer, "--label", "büro", "--expires", "90d")
    assert set(made) == {"key", "id", "prefix", "customer", "label", "created_at", "expires_at", "only", "may_issue", "made_by", "cidrs",
                         "last_used_at", "revoked_at"}
    assert made["only"] is None and made["cidrs"] == []
    assert KEY.fullmatch(made["key"]) and KEY_ID.fullmatch(made["id"]) and made["key"].startswith(made["prefix"])
    assert (made["customer"], made["label"]) == (customer, "büro")
    assert TIME.fullmatch(made["expires_at"])
    (listed,) = shell.ask("key", "list", customer)
    assert set(listed) == {"id", "customer", "prefix", "label", "created_at", "expires_at", "last_used_at",
                           "revoked_at", "only", "may_issue", "made_by", "cidrs"}
    assert all(listed[name] == made[name] for name in set(listed) & set(made))
    assert listed["last_used_at"] is None and listed["revoked_at"] is None
    assert shell.ask("customer", "show", customer)["keys"] == 1


@pytest.mark.parametrize("expires, stored", [
    ("2999-01-31", "2999-01-31T00:00:00.000Z"),
    ("2999-01-31T18:00:00+02:00", "2999-01-31T16:00:00.000Z"),
])
def test_an_expiry_may_be_a_date_or_a_time(shell, customer, expires, stored):
    assert shell.ask("key", "issue", customer, "--expires", expires)["expires_at"] == stored


@pytest.mark.parametrize("options, words", [
    (["--expires", "2001-01-01"], "not in the future"),
    (["--expires", "0d"], "not in the future"),
    (["--expires", "soon"], "not a time"),
    (["--label", "l" * 65], "label: must be 0 to 64 bytes"),
    (["--label", "a\tb"], "control characters"),
    (["--only", "money"], "only: must be sports, casino, account or manage, separated by commas"),
    (["--cidr", "203.0.113.1/24"], "did you mean 203.0.113.0/24"),
    ([word for i in range(17) for word in ("--cidr", f"203.0.113.{i}")], "at most 16 CIDR blocks"),
])
def test_issue_refuses_and_makes_nothing(shell, customer, options, words):
    assert words in shell.refused("key", "issue", customer, *options, status=2)
    assert shell.ask("key", "list", customer) == []


def test_keys_of_an_unknown_customer_are_refused(shell):
    for command in ("issue", "list"):
        assert shell.refused("key", command, "cus_nobody") == "there is no customer 'cus_nobody'"


@pytest.mark.parametrize("name", ["id", "prefix", "key"])
def test_a_key_is_revoked_by_id_prefix_or_itself_and_twice_is_fine(shell, customer, name):
    made = shell.ask("key", "issue", customer)
    assert shell.run("key", "revoke", made[name]).stdout == f"{made['id']} is revoked.\n"
    again = shell.run("key", "revoke", made[name])
    assert "was revoked before" in again.stdout
    revoked = shell.ask("key", "revoke", made[name])
    assert TIME.fullmatch(revoked["revoked_at"])
    assert shell.ask("key", "list", customer) == [revoked]
    assert shell.ask("customer", "show", customer)["keys"] == 0


def test_a_key_that_is_named_by_its_prefix_is_revoked_at_a_terminal_when_its_operator_says_yes(shell, customer):
    made = shell.ask("key", "issue", customer)
    for answer, live in (("no", True), ("", True), ("yes", False)):
        status, said = at_a_terminal(answer, "key", "revoke", made["prefix"], env=shell.environment, cwd=shell.directory)
        assert f"{made['id']}, key {made['prefix']} of " in said
        assert status == (1 if live else 0) and ("nothing was revoked" in said) == live
        assert (shell.ask("key", "list", customer)[0]["revoked_at"] is None) == live
    other = shell.ask("key", "issue", customer)
    status, said = at_a_terminal("", "key", "revoke", other["id"], env=shell.environment, cwd=shell.directory)
    assert status == 0 and "yes or no" not in said


def test_a_prefix_of_several_live_keys_is_refused_with_their_ids(shell, customer):
    first, second = (shell.ask("key", "issue", customer) for _ in range(2))
    shell.platform.execute("UPDATE api_key SET prefix = 'crk_same'")
    message = shell.refused("key", "revoke", "crk_same")
    assert first["id"] in message and second["id"] in message
    shell.run("key", "revoke", first["id"])
    assert shell.ask("key", "revoke", "crk_same")["id"] == second["id"]


def test_a_key_is_found_by_what_the_log_shows_of_it(shell, customer):
    made = shell.ask("key", "issue", customer, "--only", "casino", "--cidr", "203.0.113.7", "--cidr", "203.0.113.8/29")
    assert (made["only"], made["cidrs"]) == (["casino"], ["203.0.113.7/32", "203.0.113.8/29"])
    other = shell.ask("key", "issue", customer)
    revoked = shell.ask("key", "revoke", made["id"])
    for name in ("prefix", "id", "key"):
        assert shell.ask("key", "find", made[name]) == [revoked]
    assert shell.ask("key", "find", "crk_0000") == []
    assert shell.refused("key", "find", "crk_0000") == "no key has that prefix or id"
    assert other["id"] not in shell.run("key", "find", made["prefix"]).stdout
    assert "that is no key" in shell.refused("key", "find", made["key"][:-1], status=2)


def test_a_configuration_that_sets_nothing_is_not_said_to_be_missing(tmp_path):
    path = tmp_path / "commented.conf"
    path.write_text("# [odds]\n")
    bare = {name: value for name, value in os.environ.items() if not name.startswith("CROUPIER_")}
    done = subprocess.run([BINARY, "customer", "list", "-c", path], env=bare, capture_output=True, text=True)
    assert done.returncode == 1 and f"note: {path} sets nothing, so every setting has its default\n" in done.stderr


def test_a_key_with_a_typo_is_not_repeated(shell, customer):
    key = shell.ask("key", "issue", customer)["key"]
    typo = key[:-1] + ("a" if key[-1] != "a" else "b")
    message = shell.refused("key", "revoke", typo, status=2)
    assert "that is no key" in message and typo not in message
    assert shell.refused("key", "revoke", "key_nobody") == "there is no key 'key_nobody'"


@pytest.mark.parametrize("where", [">/dev/full", ">&-"])
def test_a_key_that_could_not_be_written_is_said_to_be_useless(shell, customer, where):
    done = subprocess.run(["sh", "-c", f'exec "$0" "$@" {where}', str(BINARY), "key", "issue", customer], stderr=subprocess.PIPE,
                          env=shell.environment, text=True, timeout=60 * PATIENCE)
    (made,) = shell.ask("key", "list", customer)
    assert done.returncode == 1
    assert f"key revoke {made['id']}" in done.stderr


def test_a_part_of_the_output_that_was_refused_is_an_error(shell):
    with open("/dev/full", "w") as full:
        done = subprocess.run([str(BINARY), "help", "settings"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60 * PATIENCE)
    assert done.returncode == 1 and "cannot write the output: " in done.stderr and "Success" not in done.stderr


def test_a_key_that_opens_nothing_yet_comes_with_a_note(shell):
    identity = shell.ask("customer", "add", "Acme")["id"]
    shell.run("customer", "disable", identity)
    notes = shell.run("key", "issue", identity).stderr
    assert "no CIDR block" in notes and f"customer enable {identity}" in notes


# ---- addresses ----------------------------------------------------------------------------------------


def test_an_address_is_added_changed_and_removed(shell):
    added = shell.ask("ip", "add", "203.0.113.9", "--sports", "cricket", "--rate", "60/60")
    assert TIME.fullmatch(added.pop("created_at"))
    assert added == {"address": "203.0.113.9", "enabled": True, "sports": ["cricket"],
                     "rate": {"requests": 60, "window_seconds": 60}}
    assert "there is an address '203.0.113.9' already" in shell.refused("ip", "add", "::ffff:203.0.113.9")
    assert shell.ask("ip", "set", "203.0.113.9", "--rate", "off")["rate"] is None
    assert shell.ask("ip", "disable", "203.0.113.9")["enabled"] is False
    assert shell.ask("ip", "enable", "203.0.113.9")["enabled"] is True
    shell.run("ip", "add", "2001:DB8:0::9")
    assert [entry["address"] for entry in shell.ask("ip", "list")] == ["203.0.113.9", "2001:db8::9"]
    assert shell.run("ip", "remove", "203.0.113.9").stdout == "203.0.113.9 is removed.\n"
    assert [entry["address"] for entry in shell.ask("ip", "list")] == ["2001:db8::9"]
    fresh = shell.ask("ip", "add", "203.0.113.9")
    assert (fresh["sports"], fresh["rate"], fresh["enabled"]) == ("all", None, True)


@pytest.mark.parametrize("command", [["remove"], ["enable"], ["disable"], ["set", "--rate", "off"]])
def test_an_address_that_is_not_there_is_refused(shell, command):
    message = shell.refused("ip", command[0], "203.0.113.9", *command[1:])
    assert "there is no address '203.0.113.9'" in message


@pytest.mark.parametrize("address", ["203.0.113.0/24", "203.0.113.9:80", "localhost", "fe80::1%lo"])
def test_only_one_exact_address_is_taken(shell, address):
    assert "not one exact IP address" in shell.refused("ip", "add", address, status=2)


@pytest.mark.parametrize("options", [["--rate", "1/0"], ["--sports", "chess"]])
def test_a_policy_that_is_not_acceptable_is_a_mistake(shell, options):
    assert options[1] in shell.refused("ip", "add", "203.0.113.9", *options, status=2)
    assert shell.ask("ip", "list") == []


def test_setting_nothing_is_a_mistake(shell):
    shell.run("ip", "add", "203.0.113.9")
    assert "nothing to set" in shell.refused("ip", "set", "203.0.113.9", status=2)


# ---- the disk -----------------------------------------------------------------------------------------


@pytest.mark.only("sqlite")
def test_a_full_disk_is_named_and_nothing_is_lost(shell):
    """On a file system of 1,600 KiB, in a mount namespace of the test's own."""
    script = f"""
        mount -t tmpfs -o size=1600k tmpfs {shell.directory} || exit 77
        {BINARY} migrate >/dev/null || exit 1
        n=0
        while errors=$({BINARY} customer add "$(printf '%0128d' $n)" --json 2>&1 >/dev/null); do
            n=$((n + 1)); [ $n -lt 3000 ] || exit 2
            [ $n -ne 5 ] || {{ # all but what a few more take: each is a process, and a busy machine starts few a second
                free=$(df -k --output=avail {shell.directory} | tail -n 1)
                head -c $(((free - 80) * 1024)) /dev/zero >{shell.directory}/ballast
            }}
        done
        echo "$errors"
        rm {shell.directory}/ballast
        echo "$n $({BINARY} customer list | tail -n +2 | wc -l)"
        {BINARY} customer add After
    """
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True,
                          env=shell.environment, timeout=120 * PATIENCE)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("needs the right to mount")
    assert done.returncode == 0, done
    lines = done.stdout.splitlines()
    assert shell.platform.where in done.stdout and "the disk is full" in done.stdout
    kept, listed = lines[-2].split()
    assert kept == listed and int(kept) >= 5
    assert CUSTOMER_ID.fullmatch(lines[-1])


def test_help_shows_examples_on_every_level():
    for command in (["customer"], ["key"], ["ip"], ["migrate"], ["customer", "add"], ["key", "issue"], ["ip", "add"]):
        done = subprocess.run([str(BINARY), *command, "--help"], capture_output=True, text=True,
                              env={**os.environ}, timeout=60 * PATIENCE)
        assert done.returncode == 0
        assert "Examples:\n  " in done.stdout and "Usage: croupier" in done.stdout
