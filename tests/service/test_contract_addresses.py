"""Which address a request comes from: the peer, or what trusted proxies say of it."""

import socket

import pytest

from croupier import NOT_ALLOWED, Service, eventually

pytestmark = pytest.mark.depends_on("platform")

KNOWN4, KNOWN6 = "203.0.113.7", "2001:db8::7"
TRUSTED_PEER, TRUSTED_PEER_2, UNTRUSTED_PEER, LISTED_PEER = "127.0.0.1", "127.0.5.9", "127.0.0.2", "127.0.0.3"


@pytest.fixture(scope="module")
def proxied(tmp_path_factory):
    service = Service(tmp_path_factory.mktemp("proxied"), {
        "server.trusted_proxies": "127.0.0.1, 127.0.5.0/24, 10.0.0.0/8, 2001:db8:ffff::/48"})
    for address in (KNOWN4, KNOWN6, LISTED_PEER):
        service.run("ip", "add", address)
    service.customer = service.add_customer("Behind a proxy", cidrs=["198.51.100.16/28", "2001:db8:1::/48"])
    service.start()
    service.await_admission(source=LISTED_PEER)
    yield service
    service.stop()


def ask(service, *forwarded, source=TRUSTED_PEER, key=None):
    response = service.get("/api/v1/sports", key=key, source=source,
                           headers=[("X-Forwarded-For", value) for value in forwarded])
    if response.status != 200:
        assert (response.status, response.json()) == NOT_ALLOWED
    return response.status == 200


@pytest.mark.parametrize("forwarded", [
    ["203.0.113.7"], ["203.0.113.7:5678"], ["  203.0.113.7  "], ["\t203.0.113.7"],
    ["198.51.100.1, 203.0.113.7"], ["garbage, 203.0.113.7"], ["unknown,,203.0.113.7"],
    ["203.0.113.7, 10.1.2.3"], ["203.0.113.7,10.1.2.3,10.9.9.9:80"], ["203.0.113.7, 127.0.0.1, 10.255.255.255"],
    ["203.0.113.7, [2001:db8:ffff::1]:80"], ["203.0.113.7, 2001:db8:ffff:1::9"],
    ["::ffff:203.0.113.7"], ["[::ffff:203.0.113.7]:99"], ["::ffff:cb00:7107"], ["203.0.113.7, ::ffff:10.1.1.1"],
    ["203.0.113.7", "10.0.0.5"], ["garbage", "203.0.113.7"], ["198.51.100.1, 203.0.113.7", "10.0.0.5", "10.0.0.6"],
    ["2001:db8::7"], ["[2001:db8::7]:443"], ["[2001:db8::7]"], ["2001:DB8:0:0:0:0:0:7"], ["2001:0db8::0007, 10.0.0.1"]])
def test_the_first_untrusted_address_from_the_right_is_the_client(proxied, forwarded):
    assert ask(proxied, *forwarded)
    assert ask(proxied, *forwarded, source=TRUSTED_PEER_2)


@pytest.mark.parametrize("forwarded", [
    ["203.0.113.8"], ["203.0.113.7, 198.51.100.1"], ["203.0.113.7", "198.51.100.1"], ["203.0.113.7, 11.0.0.1"],
    ["198.51.100.1, 10.0.0.1"], ["2001:db8::8"], ["2001:db8::7:443"], ["203.0.113.7, 2001:db8:fffe::1"]])
def test_any_other_address_is_judged_as_itself(proxied, forwarded):
    assert not ask(proxied, *forwarded)


@pytest.mark.parametrize("unreadable", [
    "", "garbage", "unknown", "_hidden", "203.0.113", "203.0.113.7.1", "203.0.113.256", "203.0.113.007", "0xcb.0.113.7",
    "3405803783", "203.0.113.7:", "203.0.113.7:99999", "203.0.113.7:5x", "203.0.113.7:-1", "203.0.113.7 198.51.100.1",
    "[2001:db8::7", "2001:db8::7]", "[2001:db8::7]443", "2001:db8::7%eth0", "2001:db8:::7", "[]", "203.0.113.7/32",
    '"203.0.113.7"', "for=203.0.113.7", "localhost", "%32%30", "203.0.113.7;x", "0.0.0.0",
    "0.0.0.0:80", "::", "[::]:80", "::ffff:0.0.0.0", "x" * 4000])
def test_what_cannot_be_read_on_the_way_is_an_unknown_address(proxied, unreadable):
    assert not ask(proxied, unreadable)
    assert not ask(proxied, f"203.0.113.7, {unreadable}")
    assert not ask(proxied, f"203.0.113.7, {unreadable}, 10.0.0.1")
    assert not ask(proxied, "203.0.113.7", unreadable)


def test_an_unknown_address_is_in_no_customers_network(proxied):
    open_to_all = proxied.add_customer("Open to all", cidrs=["0.0.0.0/0", "::/0"])
    proxied.await_admission(open_to_all.key, source=LISTED_PEER)
    assert ask(proxied, "198.51.100.1", key=open_to_all.key)
    for unknown in ("garbage", "0.0.0.0", "[::]:80", "::ffff:0.0.0.0"):
        assert not ask(proxied, unknown, key=open_to_all.key)


@pytest.mark.parametrize("source", [UNTRUSTED_PEER, LISTED_PEER])
def test_the_header_of_an_untrusted_peer_is_ignored(proxied, source):
    for forwarded in ([], ["203.0.113.7"], ["garbage"], ["203.0.113.7, 10.0.0.1", "127.0.0.3"], ["198.51.100.1"]):
        assert ask(proxied, *forwarded, source=source) == (source == LISTED_PEER)


def test_without_the_header_a_trusted_peer_is_itself(proxied):
    assert not ask(proxied)


@pytest.mark.parametrize("name", ["Forwarded", "X-Real-IP", "X-Client-IP", "True-Client-IP", "CF-Connecting-IP",
                                  "X-Forwarded", "X-Forwarded-Host", "Via", "X-Forwarded_For"])
def test_no_other_header_names_the_client(proxied, name):
    for value in ("203.0.113.7", "for=203.0.113.7"):
        assert proxied.get("/api/v1/sports", headers={name: value}).status == 403


@pytest.mark.parametrize("forwarded, allowed", [
    ("198.51.100.16", True), ("198.51.100.31", True), ("198.51.100.15", False), ("198.51.100.32", False),
    ("::ffff:198.51.100.20", True), ("2001:db8:1::", True), ("2001:db8:1:ffff:ffff:ffff:ffff:ffff", True),
    ("2001:db8:0:ffff::1", False), ("2001:db8:2::", False), ("[2001:db8:1::5]:1", True)])
def test_a_customers_networks_hold_both_families(proxied, forwarded, allowed):
    assert ask(proxied, forwarded, key=proxied.customer.key) == allowed


@pytest.mark.parametrize("forwarded, logged", [
    (["198.51.100.99, 10.1.2.3"], "198.51.100.99"), (["198.51.100.1, 2001:db8::66"], "2001:db8::66"),
    (["garbage"], TRUSTED_PEER), ([], TRUSTED_PEER), (["10.0.0.3, 10.0.0.2"], "10.0.0.3")])
def test_the_log_names_the_address_that_was_judged_also_when_it_was_refused(proxied, forwarded, logged):
    response = proxied.get("/api/v1/sports", key=proxied.customer.key, source=TRUSTED_PEER,
                           headers=[("X-Forwarded-For", value) for value in forwarded])
    assert (response.status, response.json()) == NOT_ALLOWED
    line = proxied.log_line(response)
    assert line["client"] == logged


@pytest.mark.parametrize("forwarded, key, reason, known", [
    ("203.0.113.9", None, "no_policy", False), ("198.51.100.17", "", "unusable_key", False),
    ("198.51.100.17", "crk_" + "0" * 36, "unusable_key", False),
    ("203.0.113.9", "own", "address_not_listed", True), ("garbage", "own", "unknown_address", False)])
def test_the_log_alone_says_why_a_caller_was_refused(proxied, forwarded, key, reason, known):
    response = proxied.get("/api/v1/sports", source=TRUSTED_PEER, headers=[("X-Forwarded-For", forwarded)],
                           key=proxied.customer.key if key == "own" else key)
    assert (response.status, response.json()) == NOT_ALLOWED
    line = proxied.log_line(response)
    assert line["reason"] == reason
    assert line["customer"] == (proxied.customer.id if known else "")
    assert line["key"] == (proxied.customer.key[:8] if known else "")


def test_the_log_names_a_revoked_key_and_whose_it_was(proxied):
    key = proxied.issue_key(proxied.customer.id)
    proxied.run("key", "revoke", key)

    def line_of_a_refusal():
        response = proxied.get("/api/v1/sports", source=TRUSTED_PEER, headers={"X-Forwarded-For": "198.51.100.17"},
                               key=key)
        identity = response.header("x-request-id")
        line = eventually(lambda: [line for line in proxied.log_lines() if line.get("id") == identity])[0]
        return line if line.get("reason") == "revoked_key" else None
    line = eventually(line_of_a_refusal)
    assert (line["customer"], line["key"]) == (proxied.customer.id, key[:8])


def test_an_address_that_asks_for_the_casino_is_told_apart_in_the_log(proxied):
    response = proxied.get("/api/v1/casino/games", source=TRUSTED_PEER, headers={"X-Forwarded-For": "203.0.113.7"})
    assert (response.status, response.json()) == NOT_ALLOWED
    line = proxied.log_line(response)
    assert line.get("reason") == "no_key"
    assert (line["client"], line["customer"]) == ("203.0.113.7", "")


def test_a_connection_may_carry_many_clients(proxied):
    with proxied.connect(source=TRUSTED_PEER) as connection:
        for _ in range(3):
            for forwarded, status in [("203.0.113.7", 200), ("203.0.113.8", 403), ("2001:db8::7", 200),
                                      ("garbage", 403), ("203.0.113.7, 10.0.0.1", 200), (None, 403)]:
                line = f"X-Forwarded-For: {forwarded}\r\n" if forwarded else ""
                connection.send(f"GET /api/v1/sports HTTP/1.1\r\nHost: a\r\n{line}\r\n")
                assert connection.receive().status == status


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
        return True
    except OSError:
        return False


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")
def test_an_ipv4_client_of_an_ipv6_listener_is_an_ipv4_address(make_service):
    service = make_service({"server.listen": "[::]:0"})
    customer = service.add_customer(cidrs=["127.0.0.0/8"])
    over6 = service.add_customer(cidrs=["::1/128"])
    service.spawn()
    eventually(service.listening, 30)
    port = service.address[1]
    for host, key, status in [("127.0.0.1", customer.key, 200), ("::1", customer.key, 403),
                              ("127.0.0.1", over6.key, 403), ("::1", over6.key, 200)]:
        eventually(lambda: service.request("GET", "/api/v1/sports", key=key, address=(host, port)).status == status)
