"""The Redis engine of the odds store: how a server is reached, by name, as a user, by Sentinel and by TLS."""

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fake_redis import FakeRedis, array, bulk
from redis_store import Store, eventually

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import servers  # noqa: E402


# ---- names ----------------------------------------------------------------------------------------------

def test_a_name_that_is_found_late_is_found_all_the_same(redis, open_store, names):
    """No one waits for longer than usual; and it is not asked for again and again, which would never end."""
    names.set(slow_name=(4.5, "127.0.0.1"))
    store = open_store(f"redis://slow-name:{redis.port}/0", timeout_ms=250, names=names)
    assert store.status() == "timeout"
    eventually(lambda: "address of slow-name is not found in time" in store.log_text())
    assert store.read()[0] == "timeout"
    store.await_status("ok")
    assert store.value() == "[1]" and names.lookups() == 1


def test_a_name_that_is_not_found_is_looked_up_again(redis, open_store, names):
    names.set(slow_name=(0,))
    store = open_store(f"redis://slow-name:{redis.port}/0", timeout_ms=250, names=names)
    assert store.status() == "unavailable"
    assert "address of slow-name cannot be found" in " ".join(store.ping())
    names.set(slow_name=(0, "127.0.0.1"))
    store.await_status("ok")
    assert store.value() == "[1]" and names.lookups() >= 2


def test_the_end_does_not_wait_for_a_name(open_store, names):
    names.set(slow_name=(60, "127.0.0.1"), slow_sentinel=(60, "127.0.0.1"))
    stores = [open_store(uri, timeout_ms=250, names=names)
              for uri in ("redis://slow-name:1/0", "redis+sentinel://slow-sentinel:1/croupier/0")]
    assert names.lookups() == 2
    for store in stores:
        store.close()


@pytest.mark.parametrize("others", [["127.0.0.3"], ["127.0.0.3", "127.0.0.4", "127.0.0.5"], ["0100::1"]])
def test_a_name_that_leads_elsewhere_first(redis, open_store, names, others):
    names.set(many=(0, *others, "127.0.0.1"))
    store = open_store(f"redis://many:{redis.port}/0", timeout_ms=2000, names=names)
    assert store.status() == "ok", store.log_text()
    assert store.value() == "[1]" and names.lookups() == 1
    assert "cannot be used" not in store.log_text()


def test_a_name_that_leads_first_to_where_no_one_answers(redis, open_store, names):
    with contextlib.closing(socket.create_server(("127.0.0.2", redis.port))):
        names.set(many=(0, "127.0.0.2", "127.0.0.1"))
        store = open_store(f"redis://many:{redis.port}/0", timeout_ms=2000, names=names)
        assert store.status() == "ok" and names.lookups() == 1


def test_sentinels_whose_names_are_found_late(sentinel, open_store, names):
    sentinel.master.call("SET", "odds:cricket:1", "[1]")
    hosts = [f"slow-{i}:{one.port}" for i, one in enumerate(sentinel.sentinels)]
    names.set(slow_0=(4, "127.0.0.3", "127.0.0.1"), slow_1=(4, "127.0.0.1"), slow_2=(4, "127.0.0.1"))
    store = open_store(f"redis+sentinel://{','.join(hosts)}/croupier/0", timeout_ms=250, names=names)
    store.await_status("timeout")
    store.await_status("ok")
    assert store.value() == "[1]" and names.lookups() == 3


def test_a_command_waits_for_a_name_that_is_found_late(redis, names):
    names.set(slow_name=(4, "127.0.0.1"))
    done = subprocess.run([os.environ["CROUPIER_BIN"], "feed", "interest", "cricket"], capture_output=True,
                          env={**names.environment(), "CROUPIER_ODDS_STORE": f"redis://slow-name:{redis.port}/0"})
    assert done.returncode == 0, done.stderr


# ---- users -----------------------------------------------------------------------------------------------

def documented_rules():
    """What docs/operations.md says that the server's user needs."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "operations.md").read_text()
    return re.search(r"^user croupier on >PASSWORD (.*)$", text, re.MULTILINE)[1]


def test_a_user_with_no_more_rights_than_needed(open_store):
    with servers.Redis(password="other", users={"croupier": ">s3cret/@:%? " + documented_rules()}) as redis:
        redis.call("SET", "odds:cricket:1", "[1]")
        secret = "s3cret%2F%40%3A%25%3F"
        for uri in (f"redis://croupier:{secret}@127.0.0.1:{redis.port}/2",
                    f"unix://croupier:{secret}@{redis.socket}?db=2"):
            store = open_store(uri)
            assert store.status() == "ok", store.log_text()
            redis.call("SELECT", "2"), redis.call("SET", "odds:cricket:1", "[2]")
            assert store.value() == "[2]"
            store.ask("note cricket 1")
            eventually(lambda: redis.call("ZSCORE", "interest:cricket", "1") is not None)
            redis.call("DEL", "interest:cricket")
            assert redis.cli("ACL", "DRYRUN", "croupier", "UNLINK", "odds:cricket:1") != "OK"
            assert "s3cret" not in store.log_text()
        denied = open_store(f"redis://croupier:wrong@127.0.0.1:{redis.port}/0")
        assert denied.status() == "unavailable" and "wrong" not in denied.log_text()


@pytest.fixture(scope="module")
def with_user():
    """A server with a user, and the rules that the user is to have."""
    with servers.Redis(password="other", users={"croupier": ">secret"}) as redis:
        def permit(rules):
            redis.call("ACL", "SETUSER", "croupier", "reset", "on", ">secret", *rules)
            redis.call("CLIENT", "KILL", "USER", "croupier")
        yield f"redis://croupier:secret@127.0.0.1:{redis.port}/0", permit


READING = ["+watch", "+multi", "+exec", "+get", "+getrange", "+pttl", "~catalog:*", "~odds:*"]
WRITING = ["+zadd", "+zremrangebyscore", "+eval", "+time", "+set", "~interest:*", "~rate:*"]


@pytest.mark.parametrize("rule", READING + WRITING)
def test_a_right_that_is_missing_is_named_by_the_server(with_user, open_store, rule):
    uri, permit = with_user
    permit([one for one in documented_rules().split() if one != rule])
    store = open_store(uri, timeout_ms=2000)
    command = rule[1:].upper() if rule[0] == "+" else rf"\w+ {rule[1:-1]}\w*"
    status, text = store.ping("serve")
    assert status == "unavailable" and re.match(rf"{command}.*: .*NOPERM ", text)
    assert store.ping()[0] == ("unavailable" if rule in READING else "ok")
    assert "secret" not in store.log_text()


def test_looking_at_rights_changes_nothing(redis, open_store):
    redis.call("ZADD", "interest:cricket", "1", "7")
    before = redis.call("DEBUG", "DIGEST")
    store = open_store(redis.uri)
    assert store.ping("serve") == ["ok", ""]
    assert redis.call("DEBUG", "DIGEST") == before


def test_a_server_without_memory_takes_no_more(own_redis, open_store):
    store = open_store(own_redis.uri)
    own_redis.call("CONFIG", "SET", "maxmemory", "1")
    assert store.ask("publish cricket 1 [3]").startswith("publish full cannot publish: OOM ")
    assert store.value() == "[1]"


# ---- Sentinel --------------------------------------------------------------------------------------------

@pytest.fixture
def sentinel():
    with servers.Sentinel(replicas=1, sentinels=3) as cluster:
        yield cluster


def test_a_failover_that_is_asked_for(sentinel, open_store):
    store = open_store(sentinel.uri, timeout_ms=1000)
    sentinel.master.call("SET", "odds:cricket:1", "[1]")
    eventually(lambda: store.value() == "[1]")
    new = sentinel.fail_over()
    new.call("SET", "odds:cricket:1", "[2]")
    eventually(lambda: store.read()[::3] == ("ok", "[2]"))
    store.await_status("ok")
    new.call("SET", "odds:cricket:1", "[3]")
    eventually(lambda: store.value() == "[3]")


def is_replica(server):
    with contextlib.suppress(OSError):  # the sentinels close the connections of a former master
        return server.call("ROLE")[0] == b"slave"


@pytest.mark.parametrize("how", ["kill", "freeze"])
def test_a_failover_because_the_master_is_gone(sentinel, open_store, how):
    store = open_store(sentinel.uri, timeout_ms=1000)
    former = sentinel.master
    former.call("SET", "odds:cricket:1", "[1]")
    assert store.value() == "[1]"
    assert former.call("WAIT", 1, 0) == 1, "the replica has it"
    getattr(former, how)()
    new = sentinel.await_failover(former)
    store.await_status("ok")
    assert store.value() == "[1]"
    new.call("SET", "odds:cricket:1", "[2]")
    eventually(lambda: store.value() == "[2]")
    if how == "freeze":
        former.thaw()
        eventually(lambda: is_replica(former))
        assert store.value() == "[2]"


def test_a_master_that_does_not_know_yet_that_it_was_replaced_is_left(sentinel, open_store):
    """The sentinels and the feed are on one side of a split, the former master and this instance on the other:
    only the sentinels' message tells."""
    store = open_store(sentinel.uri, timeout_ms=1000)
    former = sentinel.master
    former.call("SET", "odds:cricket:1", "[1]")
    assert store.value() == "[1]"
    assert former.call("WAIT", 1, 0) == 1, "the replica has it"
    # The former master answers this instance, and no one else.
    former.freeze()
    new = sentinel.await_failover(former)
    new.call("SET", "odds:cricket:1", "[2]")
    former.thaw()
    eventually(lambda: store.read()[::3] == ("ok", "[2]"))


def test_sentinels_that_are_gone_do_no_harm_while_the_master_works(sentinel, open_store):
    store = open_store(sentinel.uri, timeout_ms=1000)
    sentinel.master.call("SET", "odds:cricket:1", "[1]")
    master = sentinel.master
    eventually(lambda: store.value() == "[1]")
    for one in sentinel.sentinels[:2]:
        one.kill()
    assert store.status() == "ok" and store.value() == "[1]"
    again = open_store(sentinel.uri, timeout_ms=1000)
    again.await_status("ok")
    sentinel.sentinels[2].kill()
    time.sleep(2)
    assert store.status() == "ok" and store.value() == "[1]" and store.facts()["reopened"] == 0
    master.call("SET", "odds:cricket:1", "[2]")
    eventually(lambda: store.value() == "[2]")
    no_one = open_store(sentinel.uri, timeout_ms=1000)
    assert no_one.status() == "unavailable" and "sentinel at 127.0.0.1" in " ".join(no_one.ping())


def test_a_service_that_no_sentinel_knows(sentinel, open_store):
    store = open_store(sentinel.uri.replace("/croupier/", "/no_one/"))
    assert store.status() == "unavailable"
    assert "knows no master" in " ".join(store.ping())


def test_a_sentinel_without_a_password_among_those_with_one(fake, open_store):
    question = "SENTINEL GET-MASTER-ADDR-BY-NAME"
    with FakeRedis() as closed, FakeRedis() as open_to_all:
        closed.errors.update({question: "NOAUTH Authentication required.", "AUTH": "WRONGPASS invalid password"})
        open_to_all.errors["AUTH"] = "ERR AUTH <password> called without any password configured"
        open_to_all.raw[question] = array(bulk("127.0.0.1"), bulk(str(fake.port)))
        hosts = ",".join(f"127.0.0.1:{one.port}" for one in (closed, open_to_all))
        store = open_store(f"redis+sentinel://:secret@{hosts}/croupier/0")
        assert store.status() == "ok", store.log_text()
        assert store.value() == "[1]"
        assert closed.count("AUTH", "secret") >= 1


# ---- TLS -------------------------------------------------------------------------------------------------

@pytest.fixture
def with_tls(tmp_path):
    """A server, its port for TLS, and the certificate to trust."""
    certificate, key = servers.make_certificate(tmp_path, "server", "IP:127.0.0.1,DNS:localhost")
    port = servers.free_port()
    with servers.Redis(settings={"tls-port": port, "tls-cert-file": certificate, "tls-key-file": key,
                                 "tls-ca-cert-file": certificate, "tls-auth-clients": "no"}) as server:
        server.call("SET", "odds:cricket:1", "[1]")
        yield server, port, certificate


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_odds_by_tls(with_tls, open_store, host):
    server, port, certificate = with_tls
    store = open_store(f"rediss://{host}:{port}/0?tls_ca={certificate}", timeout_ms=2000)
    assert store.status() == "ok", store.log_text()
    assert store.value() == "[1]"
    large = "x" * (5 * 1024 * 1024)
    server.call("SET", "odds:cricket:2", large)
    status, _, _, text = store.read("cricket 2")
    assert status == "ok" and text == "x" * 60
    server.call("SET", "odds:cricket:1", "[2]")
    eventually(lambda: store.odds_version() is None)
    assert store.value() == "[2]"
    assert store.ask("publish cricket 1 " + "y" * 3000000) == "publish ok "
    assert server.cli("STRLEN", "odds:cricket:1") in (3000000, "3000000")
    assert store.ask("herd 30 cricket 2").startswith("herd ")
    store.await_status("ok")
    server.kill()
    store.await_status("unavailable")
    server.start()
    store.await_status("ok")


def processor_seconds(process):
    """What it has taken of the processor so far."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_server_that_is_silent_in_the_handshake_costs_no_processor_time(with_tls, open_store):
    server, port, certificate = with_tls
    store = open_store(f"rediss://127.0.0.1:{port}/0?tls_ca={certificate}", timeout_ms=1000)
    assert store.value() == "[1]"
    server.freeze()
    store.await_status("timeout")
    before = processor_seconds(store.process)
    time.sleep(2)
    assert processor_seconds(store.process) - before < 0.5
    server.thaw()
    store.await_status("ok")
    assert store.value() == "[1]"


def test_a_server_that_is_not_who_it_should_be(with_tls, open_store, tmp_path):
    server, port, certificate = with_tls
    other, _ = servers.make_certificate(tmp_path, "other", "IP:127.0.0.1")
    stores = [open_store(f"rediss://127.0.0.1:{port}/0", timeout_ms=2000),  # not trusted by the system
              open_store(f"rediss://127.0.0.1:{port}/0?tls_ca={other}", timeout_ms=2000),
              open_store(f"rediss://127.0.0.2:{port}/0?tls_ca={certificate}", timeout_ms=2000),  # another name
              open_store(f"rediss://127.0.0.1:{server.port}/0?tls_ca={certificate}", timeout_ms=2000)]  # no TLS
    for store in stores:
        eventually(lambda: store.status() in ("unavailable", "timeout"))
        assert store.read()[0] in ("unavailable", "timeout")
    wrong = Store(f"rediss://127.0.0.1:{port}/0?tls_ca=/nowhere.pem")
    assert "certificates to trust cannot be read: /nowhere.pem" in wrong.first
