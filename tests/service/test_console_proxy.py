"""A sign-in proxy that names the operator (docs/console.md, "Behind a sign-in proxy"): a real HAProxy with the page's own
configuration, and every way to forge the name."""

import base64
import re
import shutil
import signal
import socket

import pytest

from croupier import ROOT, Response, Service, certificate, eventually, trusting
from reference import Proxy
from servers import free_port
from test_console import SAME, Console, code, machine

pytestmark = [pytest.mark.depends_on("platform"), pytest.mark.takes("haproxy")]

SECRET = "one secret of the proxy and croupier"
USER = "X-Forwarded-User"
PROXY = {USER: "anna", "X-Croupier-Proxy-Secret": SECRET}
SESSION = "/admin/v1/session"


def secret_file(directory):
    path = directory / "proxy-secret"
    path.write_text(SECRET + "\n")
    path.chmod(0o600)
    return path


class Team:
    """A croupier, and the HAProxy of docs/console.md, which knows anna, olga (an owner) and a few whom croupier does not let in."""

    def __init__(self, directory):
        self.address = ("127.0.0.1", free_port())
        # Only 127.0.0.1 is listed: every other loopback address is outside.
        self.service = Service(directory, {
            "operator.trusted_user_header": USER, "operator.trusted_user_proxies": "127.0.0.1, 192.0.2.0/24",
            "operator.trusted_user_secret_file": secret_file(directory), "server.trusted_proxies": "127.0.0.1",
            "operator.listen": f"127.0.0.1:{(port := free_port())}",
            "operator.hosts": f"127.0.0.1:{port}, 127.0.0.1:{self.address[1]}"})
        for name, role in (("anna", "operator"), ("rita", "reader"), ("olga", "owner"), ("dora", "operator")):
            self.service.prepare("operator", "add", name, "--role", role)
        self.service.run("operator", "disable", "dora")
        self.service.start()
        self.certificate, key = certificate(directory)
        pem = directory / "console.pem"
        pem.write_bytes(self.certificate.read_bytes() + key.read_bytes())
        block = re.search(r"```text\n(userlist team.*?)```", (ROOT / "docs" / "console.md").read_text(), re.S).group(1)
        for there, here in (("/etc/haproxy/console.pem", str(pem)), ("10.20.0.5:443", "{}:{}".format(*self.address)),
                            ("127.0.0.1:9090", "{}:{}".format(*self.service.operator_address)), ("CHANGE-ME", SECRET)):
            assert there in block, there
            block = block.replace(there, here)
        users = "".join(f"    user {name} insecure-password {name}\n" for name in ("anna", "rita", "olga", "dora", "nobody"))
        self.proxy = Proxy(None, "haproxy", "127.0.0.1")
        self.proxy.start(f"defaults\n    mode http\n    timeout client 60s\n    timeout server 60s\n    timeout connect 5s\n"
                         f"userlist team\n{users}{re.sub(r'userlist team.*?(?=^frontend)', '', block, flags=re.S | re.M)}")
        eventually(lambda: self.ask("GET", "/", user=None).status == 401)

    def ask(self, method, path, user="anna", headers=(), body=None):
        """Through the proxy, as its user."""
        fields = list(headers)
        if user:
            fields.append(("Authorization", "Basic " + base64.b64encode(f"{user}:{user}".encode()).decode()))
        try:
            return self.service.attempt(method, path, headers=fields, body=body, address=self.address, tls=trusting(self.certificate))
        except OSError:
            assert self.proxy.process.poll() is None, self.proxy.log_text()
            return Response(0, [], b"")

    def direct(self, fields, method="GET", path=SESSION, source=None, body=None):
        """To croupier itself; the peer is 127.0.0.1, or `source`."""
        return self.service.request(method, path, headers=list(fields), body=body, source=source,
                                    address=self.service.operator_address)

    def audit(self, who):
        return [row for row in self.service.ask("audit", "list", "--who", who) if row["kind"] == "credential"]

    def close(self):
        self.service.stop()
        self.proxy.kill()
        shutil.rmtree(self.proxy.directory, ignore_errors=True)


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    made = Team(tmp_path_factory.mktemp("team"))
    yield made
    made.close()


def refused(answer, words):
    return code(answer) == (401, "not_signed_in") and words in answer.json()["error"]["message"]


# ---- through the proxy -------------------------------------------------------------------------------------------------


def test_the_proxy_signs_in_and_the_audit_has_it_once_a_day(team):
    answers = [team.ask("GET", SESSION) for _ in range(3)]
    assert [answer.status for answer in answers] == [200] * 3
    session = answers[0].json()
    assert (session["name"], session["role"]) == ("anna", "operator") and answers[2].json() == session
    assert session["expires_at"].endswith("T00:00:00.000Z") and answers[0].header("Set-Cookie") is None
    assert team.ask("GET", "/").status == 200
    [row] = team.audit("proxy anna")
    assert (row["command"], row["object"], row["before"]) == ("sign in", session["id"], None)
    assert (row["after"]["operator_name"], row["after"]["address"]) == ("anna", "127.0.0.1")
    assert session["id"] in [listed["id"] for listed in team.service.ask("operator", "sessions")]
    assert SECRET not in team.service.log_text()


def test_a_change_has_its_name_in_the_audit_and_must_be_of_the_same_origin(team):
    body = b'{"name": "Acme"}'
    json_type = ("Content-Type", "application/json")
    for origin in ((), (("Sec-Fetch-Site", "cross-site"),), (("Origin", "https://evil.example"),)):
        assert code(team.ask("POST", "/admin/v1/customers", headers=[json_type, *origin], body=body)) == (403, "not_same_origin")
    made = team.ask("POST", "/admin/v1/customers", headers=[json_type, *SAME.items()], body=body)
    assert made.status == 201 or made.status == 200, made
    [row] = [row for row in team.service.ask("audit", "list", "--who", "proxy anna") if row["kind"] == "customer"]
    assert row["command"] == "POST customers"
    assert code(team.ask("POST", "/admin/v1/customers", "rita", [json_type, *SAME.items()], body)) == (403, "role_too_low")


def test_what_a_client_sends_itself_does_not_pass_the_proxy(team):
    for name in (USER, USER.lower(), USER.upper()):
        answer = team.ask("GET", SESSION, "rita", [(name, "anna"), ("X-Croupier-Proxy-Secret", SECRET)])
        assert answer.json()["name"] == "rita"
    assert team.ask("GET", SESSION, "rita", [("X_Forwarded_User", "anna")]).json()["name"] == "rita"


@pytest.mark.parametrize("name, words", [("olga", "an owner signs in by a link"), ("dora", "is disabled"), ("nobody", "there is no operator 'nobody'")])
def test_an_owner_a_disabled_and_an_unknown_operator_are_refused(team, name, words):
    assert refused(team.ask("GET", SESSION, name), words)
    assert team.audit(f"proxy {name}") == []


def test_signing_out_is_the_proxy_s_and_an_owner_ends_the_day(team):
    identity = team.ask("GET", SESSION, "rita").json()["id"]
    assert team.ask("DELETE", SESSION, "rita", SAME.items()).status == 204
    assert team.ask("GET", SESSION, "rita").json()["id"] == identity
    owner = sign_in_directly(team, "olga")
    assert team.direct([("Cookie", owner), *SAME.items()], "DELETE", f"/admin/v1/sessions/{identity}").status == 204
    assert refused(team.ask("GET", SESSION, "rita"), "was ended")


# ---- forged ------------------------------------------------------------------------------------------------------------


def sign_in_directly(team, name):
    link = team.service.ask("operator", "link", name)["link"].partition("#/sign-in/")[2]
    answer = team.direct([("Content-Type", "application/json"), *SAME.items()], "POST", SESSION, body=b'{"link": "%s"}' % link.encode())
    assert answer.status == 200, answer
    return answer.header("Set-Cookie").partition(";")[0]


def test_the_listed_address_with_the_secret_names_an_operator(team):
    assert team.direct(PROXY.items()).json()["name"] == "anna"
    assert team.direct([("x-forwarded-USER", "anna"), ("x-croupier-proxy-secret", SECRET)]).json()["name"] == "anna"


@pytest.mark.parametrize("fields", [
    [(USER, "anna")],
    [(USER, "anna"), ("X-Croupier-Proxy-Secret", SECRET[:-1])],
    [(USER, "anna"), ("X-Croupier-Proxy-Secret", SECRET.upper())],
    [(USER, "anna"), ("X-Croupier-Proxy-Secret", "")],
    [*PROXY.items(), ("X-Croupier-Proxy-Secret", SECRET)],
    [("X_Forwarded_User", "anna"), ("X-Croupier-Proxy-Secret", SECRET)],
    [("X-Croupier-Proxy-Secret", SECRET)],
], ids=["no-secret", "shorter", "other-case", "empty", "two-secrets", "underscores", "no-name"])
def test_without_the_secret_from_loopback_it_is_no_header_at_all(team, fields):
    assert code(team.direct(fields)) == (401, "not_signed_in")
    cookie = sign_in_directly(team, "olga")
    assert team.direct([*fields, ("Cookie", cookie)]).json()["name"] == "olga"


def test_from_another_address_it_is_no_header_at_all(team):
    for more in ((), [("X-Forwarded-For", "127.0.0.1")], [("X-Forwarded-For", "192.0.2.7")]):
        assert code(team.direct([*PROXY.items(), *more], source="127.0.0.2")) == (401, "not_signed_in")


@pytest.mark.parametrize("name", ["", "Anna", "ANNA", "anna,olga", "anna olga", "anna\u00e4", "a" * 33, "a" * 64, "a" * 5000, "*", "%61nna"])
def test_a_name_that_is_not_exactly_an_operator_s_is_refused(team, name):
    answer = team.direct([(USER, name), ("X-Croupier-Proxy-Secret", SECRET)])
    assert code(answer) == (401, "not_signed_in")


@pytest.mark.parametrize("second", ["anna", "olga", ""])
def test_two_lines_are_refused(team, second):
    for name in (USER, USER.lower()):
        assert code(team.direct([*PROXY.items(), (name, second)])) == (400, "two_credentials")


def test_it_comes_with_no_cookie_and_no_token(team):
    cookie = sign_in_directly(team, "olga")
    token = machine(team.service, "machine", "owner").token
    for other in (("Cookie", cookie), ("Cookie", "croupier_session=x"), ("Authorization", f"Bearer {token}")):
        answer = team.direct([*PROXY.items(), other])
        assert code(answer) == (400, "two_credentials")
        assert answer.header("Set-Cookie").startswith("croupier_session=; ")  # so that a browser can go on
    assert code(team.ask("GET", SESSION, headers=[("Cookie", cookie)])) == (400, "two_credentials")
    assert team.direct([("Cookie", cookie)]).json()["name"] == "olga"


# ---- the configuration -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings, words", [
    ({"header": USER, "proxies": "10.0.0.1, 127.0.0.0/8"}, "trusted_user_proxies: has loopback, which needs trusted_user_secret_file"),
    ({"header": USER, "proxies": "::1"}, "needs trusted_user_secret_file"),
    ({"header": USER, "proxies": "0.0.0.0/0"}, "would trust every client"),
    ({"header": "X Forwarded"}, "printable ASCII characters without spaces"),
    ({"secret_file": "short"}, "is not one line of 16 to 1024 bytes"),
    ({"secret_file": "open"}, "others may use it"),
], ids=["loopback", "loopback-6", "everybody", "name", "short", "open"])
def test_a_configuration_that_would_let_others_in_is_refused(make_service, tmp_path, settings, words):
    for name, text, mode in (("short", "0123456789abcde\n", 0o600), ("open", SECRET, 0o644)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    if "secret_file" in settings:
        settings = dict(settings, secret_file=tmp_path / settings["secret_file"])
    service = make_service()
    service.configure({f"operator.trusted_user_{name}": value for name, value in settings.items()})
    done = service.run("check", status=None)
    assert done.returncode != 0 and words in done.text + done.errors


def test_loopback_in_a_wider_block_is_nobody_without_a_secret(make_service):
    service = make_service({"operator.trusted_user_header": USER, "operator.trusted_user_proxies": "126.0.0.0/7"})
    service.prepare("operator", "add", "anna", "--role", "operator")
    service.start()
    assert code(Console(service).ask("GET", SESSION, headers={USER: "anna"})) == (401, "not_signed_in")


def test_a_proxy_on_another_machine_needs_no_secret(make_service, tmp_path):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("this machine has no address but loopback")
        own = probe.getsockname()[0]
    chain, key = certificate(tmp_path)
    tls = trusting(chain)
    tls.check_hostname = False
    service = make_service({"operator.listen": f"{own}:{free_port()}", "operator.tls_certificate": chain, "operator.tls_key": key,
                            "operator.trusted_user_header": USER, "operator.trusted_user_proxies": own})
    service.prepare("operator", "add", "anna", "--role", "operator")
    service.start()
    assert Console(service, tls=tls).ask("GET", SESSION, headers={USER: "anna"}).json()["name"] == "anna"
    service.configure({"operator.trusted_user_proxies": "192.0.2.1"})
    service.signal(signal.SIGHUP)
    eventually(lambda: Console(service, tls=tls).ask("GET", SESSION, headers={USER: "anna"}).status == 401)


def test_it_is_off_by_default_and_goes_with_a_reload(make_service, tmp_path):
    service = make_service()
    service.prepare("operator", "add", "anna", "--role", "operator")
    service.start()
    assert code(Console(service).ask("GET", SESSION, headers=PROXY)) == (401, "not_signed_in")
    service.stop()
    on = {"operator.trusted_user_header": USER, "operator.trusted_user_proxies": "127.0.0.1",
          "operator.trusted_user_secret_file": secret_file(tmp_path)}
    service.configure(on)
    service.start()
    assert Console(service).ask("GET", SESSION, headers=PROXY).status == 200
    service.configure({**on, "operator.trusted_user_proxies": "127.0.0.9"})
    service.signal(signal.SIGHUP)
    eventually(lambda: Console(service).ask("GET", SESSION, headers=PROXY).status == 401)
