"""Fixtures: a server that a module shares, and services that a test has for itself."""

import pytest

import engines
from croupier import BINARY, Clock, Service


def pytest_configure(config):
    config.addinivalue_line("markers", "only(*engines): about these engines themselves, and run with them alone")
    config.addinivalue_line("markers", "depends_on(*stores): on nothing of these but \"odds\" and \"platform\" as they are given;"
                            " of the pairs of a run (TEST_PAIRS) that have the same ones, the first is enough")
    config.addinivalue_line("markers", "sampled: tries all its points in plain runs alone, so that a sanitized run does not stand for one (TEST_CHECKED)")
    config.addinivalue_line("markers", "takes(*programs): these, which `make test-quick` neither installs nor needs: it leaves this out")
    config.addinivalue_line("markers", "threadless: of programs that have no second thread, or none that other tests have not, or that are"
                            " killed: ThreadSanitizer can say nothing about it, so its run leaves it out")
    config.addinivalue_line("markers", "long(seconds): takes so long alone, about, and is begun early")
    if not BINARY.exists():
        pytest.exit(f"{BINARY} is not there: run `make build`, or set CROUPIER_BIN", returncode=2)


def is_run(item):
    """Whether it is run with this pair of engines. What is about one engine's files says nothing about another's, and what
    has nothing to do with an engine says the same with each. A plain run leaves out what an earlier one has run, where a
    sanitized run has run it with the engines that it depends on."""
    mark = item.get_closest_marker("depends_on")
    stores = ("odds", "platform") if mark is None else mark.args
    assert set(stores) <= {"odds", "platform"}, item

    def depended_on(pair):
        return [engine for store, engine in zip(("odds", "platform"), pair) if store in stores]

    def fitting(pairs):
        return [pair for pair in pairs if all(set(pair).issuperset(mark.args) for mark in item.iter_markers("only"))]

    def same(pairs):
        return [pair for pair in fitting(pairs) if depended_on(pair) == depended_on(chosen)]

    chosen = (engines.ODDS, engines.PLATFORM)
    if chosen not in same(engines.PAIRS)[:1]:
        return False
    return fitting(engines.PAIRS)[0] == chosen or not same(engines.CHECKED) or item.get_closest_marker("sampled") is not None


def long_ones_first(items, workers):
    """Of several workers each is given at first a quarter of its share, in order, and ever less later on: what is
    long is spread over where those quarters begin, so that none is begun when the others are about to end."""
    def seconds(item):
        mark = item.get_closest_marker("long")
        return mark.args[0] if mark else 0

    long = sorted(filter(seconds, items), key=seconds, reverse=True)
    others = [item for item in items if not seconds(item)]
    share = len(items) // workers // 4
    ordered = []
    for worker in range(workers):
        first = long[worker::workers]
        ordered += first + others[:max(share - len(first), 0)]
        del others[:max(share - len(first), 0)]
    return ordered + others


@pytest.hookimpl(trylast=True)  # pytest itself sorts by fixtures
def pytest_collection_modifyitems(config, items):
    """Leaves out what is not for this pair, which is not counted as skipped."""
    run = [item for item in items if is_run(item)]
    config.hook.pytest_deselected(items=[item for item in items if not is_run(item)])
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    items[:] = long_ones_first(run, workers) if workers > 1 else run


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
def clocked(make_service, tmp_path):
    """A running service whose time is service.clock, with one customer who may do everything (service.customer)."""
    clock = Clock(tmp_path / "clock")
    service = make_service(environment=clock.environment)
    service.clock = clock
    service.customer = service.add_customer("Clocked")
    service.start()
    service.await_admission(service.customer.key)
    return service


@pytest.fixture
def service(make_service):
    """A service of the test's own, with empty stores, not started."""
    return make_service()


@pytest.fixture
def fragile(make_service):
    """The same, with stores that can be taken away: service.odds.take_away(), service.platform.bring_back() …"""
    return make_service(own_stores=True)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The same as `service`, shared by a module's tests of commands that are refused, or that ask for help."""
    service = Service(tmp_path_factory.mktemp("stored"))
    yield service
    service.remove()


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
