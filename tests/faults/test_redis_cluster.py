"""The Redis engine of the odds store on a cluster, whose keys are all in one slot."""

import sys
from pathlib import Path

import pytest

from redis_store import Store, eventually

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import servers  # noqa: E402

PREFIX = "{croupier}:"
KEY = PREFIX + "odds:cricket:1"


@pytest.fixture(scope="module")
def shared_cluster():
    with servers.Cluster() as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster):
    """A test leaves its nodes running. `master`: of the slot."""
    shared_cluster.await_whole()
    shared_cluster.the_slot = shared_cluster.slot(PREFIX)
    master = shared_cluster.master_of(shared_cluster.the_slot)
    for key in master.cli("CLUSTER", "GETKEYSINSLOT", shared_cluster.the_slot, 1000):
        master.call("DEL", key)
    master.call("SET", KEY, "[1]")
    return shared_cluster


def other_master(cluster):
    return next(node for node in cluster.nodes if node.cli("ROLE")[0] == "master"
                and node is not cluster.master_of(cluster.the_slot))


def await_value(store, text):
    try:
        eventually(lambda: store.read()[::3] == ("ok", text))
    except AssertionError:
        pytest.fail(f"{store.read()} {store.ping()}\n{store.log_text()}")


@pytest.mark.parametrize("of", ["the master", "a replica", "another master"])
def test_any_node_leads_to_the_master_of_the_slot(cluster, open_store, of):
    master = cluster.master_of(cluster.the_slot)
    node = {"the master": master, "a replica": cluster.replica_of(master), "another master": other_master(cluster)}[of]
    store = open_store(cluster.uri(node), prefix=PREFIX)
    assert store.status() == "ok", store.log_text()
    assert store.value() == "[1]" and store.odds_version() is not None
    assert store.ping("serve") == ["ok"] or store.ping("serve")[0] == "ok"
    master.call("SET", KEY, "[2]")
    eventually(lambda: store.odds_version() is None)
    assert store.value() == "[2]" and "cannot be used" not in store.log_text()


# ---- what is refused -------------------------------------------------------------------------------------

@pytest.mark.parametrize("prefix", ["", "croupier:", "{}croupier:", "}croupier{:"])
def test_a_prefix_without_a_hash_tag_is_refused(cluster, open_store, prefix):
    for uri in (cluster.uri(cluster.nodes[0]), cluster.uri()):
        store = open_store(uri, prefix=prefix)
        assert store.status() == "unavailable" and "prefix = {croupier}:" in " ".join(store.ping())
        store.close()


def test_several_hosts_are_nodes_of_a_cluster(cluster, redis, open_store):
    store = open_store(f"redis://127.0.0.1:{redis.port},127.0.0.1:{redis.port}", prefix=PREFIX)
    assert store.status() == "unavailable" and "cluster support disabled" in " ".join(store.ping())
    gone = servers.free_port()
    store = open_store(f"redis://127.0.0.1:{gone},127.0.0.1:{cluster.nodes[4].port}", prefix=PREFIX)
    assert store.value() == "[1]", "one of them may be away at the start"


def test_a_cluster_has_one_database(cluster, open_store):
    store = open_store(cluster.uri(cluster.nodes[0]) + "/3", prefix=PREFIX)
    assert store.status() == "unavailable" and "not allowed in cluster mode" in " ".join(store.ping())


# ---- a slot that moves -----------------------------------------------------------------------------------

def publish(store, event, text):
    assert store.ask(f"publish cricket {event} {text}") == "publish ok "


@pytest.fixture
def mode(cluster, request):
    """tracking, or asking: without CLIENT TRACKING and HELLO, as with services that have no server of one's own."""
    def allow(sign):
        for node in cluster.nodes:
            node.call("ACL", "SETUSER", "default", f"{sign}client|tracking", f"{sign}hello")

    if request.param == "asking":
        allow("-")
    yield request.param
    allow("+")


@pytest.mark.parametrize("keys_first", [True, False])
@pytest.mark.parametrize("mode", ["tracking", "asking"], indirect=True)
def test_a_slot_moves_while_it_serves(cluster, open_store, mode, keys_first):
    """At every step another store publishes, and what is read next is that."""
    served = "ok" if mode == "tracking" else "pending"
    slot, target = cluster.the_slot, other_master(cluster)
    store, feed = (open_store(cluster.uri(), prefix=PREFIX, timeout_ms=2000, feeds=feeds) for feeds in (False, True))
    numbers = iter(range(2, 1000))

    def step():
        number = next(numbers)
        publish(feed, 1, f"[{number}]")
        publish(feed, 1000 + number, f"[{number}]")  # a key that was not there
        assert store.value() == store.value(f"cricket {1000 + number}") == f"[{number}]"
        assert feed.value() == f"[{number}]"

    step()
    assert store.status() == served
    assert store.read("cricket 9")[:2] == ("ok", 0)
    assert store.odds_version("cricket 9") is None, "a cluster may not report that the key was made"
    source = cluster.begin_move(slot, target)
    step()
    store.await_status("pending")  # nothing is answered from memory
    if keys_first:
        cluster.move_keys(slot, source, target, keys=[KEY])
        step()
    while cluster.move_keys(slot, source, target, count=2):
        step()
    assert store.status() == "pending" and store.ping("serve")[0] == "ok", "a right is no matter of where keys are"
    cluster.end_move(slot, target)
    step()
    store.await_status(served)
    step()
    assert cluster.master_of(slot) is target and store.odds_version("cricket 1001") is None
    assert "cannot be read" not in store.log_text() and "cannot be used" not in store.log_text()  # a feed's link logs nothing


def test_a_move_that_is_called_off(cluster, open_store):
    slot, target = cluster.the_slot, other_master(cluster)
    store, feed = (open_store(cluster.uri(), prefix=PREFIX, timeout_ms=2000, feeds=feeds) for feeds in (False, True))
    assert store.value() == "[1]"
    source = cluster.begin_move(slot, target)
    store.await_status("pending")
    publish(feed, 2, "[2]")  # to the node that gets the slot
    assert store.value("cricket 2") == "[2]"
    source.call("CLUSTER", "SETSLOT", slot, "STABLE")
    target.call("CLUSTER", "SETSLOT", slot, "STABLE")
    store.await_status("ok")
    assert store.read("cricket 2")[:2] == ("ok", 0) and store.value() == "[1]"


def test_a_slot_that_moves_without_a_key_is_noticed(cluster, open_store):
    """No invalidation comes, and no command is sent by which the store would learn of it."""
    slot, target = cluster.the_slot, other_master(cluster)
    store = open_store(cluster.uri(), prefix=PREFIX)
    store.await_status("ok")
    cluster.master_of(slot).call("DEL", KEY)
    before = store.facts()["reopened"]
    cluster.move(slot, target)
    eventually(lambda: store.facts()["reopened"] > before)
    target.call("SET", KEY, "[3]")
    store.await_status("ok")
    assert store.value() == "[3]" and store.odds_version() is not None


# ---- failover --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("how", ["kill", "freeze"])
def test_a_failover_because_the_master_is_gone(cluster, open_store, how):
    """It is found by the nodes that it named. One that is frozen answers again as the master, until it learns."""
    slot, former = cluster.the_slot, cluster.prepare_failover(cluster.the_slot)
    store = open_store(cluster.uri(former), prefix=PREFIX, timeout_ms=1000)
    assert store.value() == "[1]"
    assert former.call("WAIT", 1, 0) == 1, "the replica has it"
    getattr(former, how)()
    new = cluster.await_failover(former, slot)
    new.call("SET", KEY, "[2]")
    if how == "freeze":
        former.thaw()
    await_value(store, "[2]")
    store.await_status("ok")
    if how == "kill":
        former.start()
    cluster.await_whole()
    assert store.value() == "[2]"


@pytest.mark.parametrize("mode", ["tracking", "asking"], indirect=True)
def test_a_failover_that_is_asked_for(cluster, open_store, mode):
    former = cluster.prepare_failover(cluster.the_slot)
    store, feed = (open_store(cluster.uri(former), prefix=PREFIX, timeout_ms=2000, feeds=feeds) for feeds in (False, True))
    assert store.value() == "[1]"
    new = cluster.fail_over(cluster.the_slot)
    new.call("SET", KEY, "[2]")
    await_value(store, "[2]")
    store.await_status("ok" if mode == "tracking" else "pending")
    eventually(lambda: feed.ask("publish cricket 1 [3]") == "publish ok ")
    eventually(lambda: store.value() == "[3]")
