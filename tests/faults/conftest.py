"""What the tests of the Redis engine of the odds store are given."""

import sys
from pathlib import Path

import pytest

from fake_redis import FakeRedis
from redis_store import Names, Store

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import servers  # noqa: E402


@pytest.fixture
def open_store():
    made = []

    def make(*arguments, **options):
        made.append(Store(*arguments, **options))
        assert made[-1].first == "open", made[-1].first
        return made[-1]
    yield make
    for one in made:
        one.close()


@pytest.fixture
def names(tmp_path):
    return Names(tmp_path / "names")


@pytest.fixture
def fake():
    with FakeRedis() as server:
        server.values["catalog:cricket"] = b"[]"
        server.values["odds:cricket:1"] = b"[1]"
        yield server


@pytest.fixture(scope="module")
def shared_redis():
    with servers.Redis() as server:
        yield server


@pytest.fixture
def redis(shared_redis):
    """One that a test leaves running."""
    shared_redis.call("FLUSHALL")
    shared_redis.call("SET", "catalog:cricket", "[]")
    shared_redis.call("SET", "odds:cricket:1", "[1]")
    return shared_redis


@pytest.fixture
def own_redis():
    """One that a test stops, freezes and spoils."""
    with servers.Redis() as server:
        server.call("SET", "odds:cricket:1", "[1]")
        yield server
