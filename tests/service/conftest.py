"""Fixtures: a server that a module shares, and services that a test has for itself."""

import pytest

import engines
from croupier import BINARY, Service


def pytest_configure(config):
    config.addinivalue_line("markers", "only(*engines): about these engines themselves, and run with them alone")
    if not BINARY.exists():
        pytest.exit(f"{BINARY} is not there: run `make build`, or set CROUPIER_BIN", returncode=2)


def pytest_collection_modifyitems(config, items):
    """What is about one engine's files says nothing about another's, and is not counted as skipped there."""
    def fits(item):
        return all(engines.CHOSEN.issuperset(mark.args) for mark in item.iter_markers("only"))
    other = [item for item in items if not fits(item)]
    items[:] = [item for item in items if fits(item)]
    config.hook.pytest_deselected(items=other)


@pytest.fixture
def make_service(tmp_path):
    """Makes services of a test's own; whatever still runs at the end is stopped, and must stop well."""
    made = []

    def make(settings=None, **options):
        service = Service(tmp_path / f"service-{len(made)}", settings, **options)
        made.append(service)
        return service

    yield make
    for service in made:
        service.remove()


@pytest.fixture
def service(make_service):
    """A service of the test's own, with empty stores, not started."""
    return make_service()


@pytest.fixture
def fragile(make_service):
    """The same, with stores that can be taken away: service.odds.take_away(), service.platform.bring_back() …"""
    return make_service(own_stores=True)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A running service that the tests of a module share, with one customer who may do everything
    (shared.customer). A test publishes what it needs before it looks."""
    service = Service(tmp_path_factory.mktemp("shared"))
    service.customer = service.add_customer("Shared")
    service.start()
    service.await_admission(service.customer.key)
    yield service
    service.remove()
