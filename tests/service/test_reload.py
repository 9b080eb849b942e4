"""Reading the configuration again: `croupier reload`, and what the unit's ExecReload tells systemd."""

import json
import os
import shlex
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from croupier import BINARY, PATIENCE, ROOT, certificate, eventually, trusting
from fake_provider import Authority

pytestmark = pytest.mark.depends_on("platform")

FORWARDED = {"X-Forwarded-For": "203.0.113.9"}


@pytest.fixture
def running(service):
    service.run("ip", "add", "203.0.113.9")
    service.start()
    return service


def unit_reloads(service):
    """Runs the ExecReload lines of the unit as systemd does; the first that fails ends it."""
    unit = (ROOT / "dist" / "croupier.service").read_text()
    lines = [line.partition("=")[2] for line in unit.splitlines() if line.startswith("ExecReload=")]
    assert lines
    for line in lines:
        words = [word.replace("@bindir@/croupier", str(BINARY)).replace("$MAINPID", str(service.process.pid))
                 for word in shlex.split(line)]
        done = subprocess.run(words, capture_output=True, text=True, env=service.environment, timeout=60 * PATIENCE)
        if done.returncode != 0:
            break
    return done


def threads_of(service):
    return [path.read_text().strip() for path in Path(f"/proc/{service.process.pid}/task").glob("*/comm")]


def told(service, message):
    return [line for line in service.log_lines() if line["message"] == message]


def test_what_the_unit_reloads_is_in_force_when_it_says_so(running):
    assert running.get("/api/v1/sports", headers=FORWARDED).status == 403
    running.configure({"server.trusted_proxies": "127.0.0.0/8"})
    done = unit_reloads(running)
    assert done.returncode == 0 and done.stderr == ""
    assert running.get("/api/v1/sports", headers=FORWARDED).status == 200
    eventually(lambda: told(running, "configuration read again"))


def test_a_broken_file_makes_the_unit_s_reload_fail_with_the_reason(running):
    good = running.configuration.read_text()
    running.configuration.write_text(good.replace("[log]", "[server]\ntrusted_proxies = 127.0.0.0/8\nnonsense = 1\n[log]"))
    done = unit_reloads(running)
    assert done.returncode == 1
    assert f"{running.configuration}:" in done.stderr and "nonsense" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    eventually(lambda: told(running, "configuration not read again; nothing has changed"))
    assert running.get("/api/v1/sports", headers=FORWARDED).status == 403
    running.configuration.unlink()
    assert unit_reloads(running).returncode == 1
    running.configuration.write_text(good)
    assert unit_reloads(running).returncode == 0


def test_a_pair_that_does_not_fit_makes_the_reload_fail(make_service, tmp_path):
    paths, other = certificate(tmp_path), certificate(tmp_path, "other")
    service = make_service({"server.tls_certificate": paths[0], "server.tls_key": paths[1]})
    service.tls = trusting(paths[0])
    service.start()
    service.configure({"server.tls_key": other[1]})
    done = unit_reloads(service)
    assert done.returncode == 1 and other[1].name in done.stderr
    service.configure({"server.tls_certificate": other[0]})
    assert unit_reloads(service).returncode == 0
    service.tls = trusting(other[0])
    assert service.get("/api/v1/health").status == 200


def test_the_log_names_a_certificate_that_has_expired_at_the_start_and_at_a_reload(make_service):
    service = make_service()
    gone, key = Authority(service.directory).certificate("gone", "DNS:localhost", days=-1)
    service.configure({"operator.tls_certificate": gone, "operator.tls_key": key})
    service.start()
    for times in (1, 2):
        lines = [line for line in service.log_lines() if "has expired" in line["message"]]
        assert [(line["level"], line["tls_certificate"]) for line in lines] == [("warning", str(gone))] * times
        assert unit_reloads(service).returncode == 0


def test_what_needs_a_restart_is_named(running):
    running.configure({"server.threads": 1, "odds.timeout_ms": 251})
    done = running.run("reload", running.process.pid, configuration=False)
    assert "server.threads, odds.timeout_ms" in done.errors and "restart" in done.errors
    document = json.loads(running.run("reload", running.process.pid, "--json", configuration=False).text)
    assert document == {"restart_needed": ["server.threads", "odds.timeout_ms"]}


def make_fifo_of(path):
    """As a mount that hangs, whoever opens the path waits. Returns what was there."""
    content = path.read_text()
    path.unlink()
    os.mkfifo(path, 0o600)
    return content


def start_reload(service):
    return subprocess.Popen([BINARY, "reload", str(service.process.pid)], stderr=subprocess.PIPE, text=True, env=service.environment)


def test_a_file_that_blocks_blocks_nothing_else(running):
    content = make_fifo_of(running.configuration)
    running.process.send_signal(signal.SIGHUP)
    eventually(lambda: "reload" in threads_of(running))
    commands = [start_reload(running), start_reload(running)]
    eventually(lambda: any(command.poll() is not None for command in commands))
    refused, waiting = sorted(commands, key=lambda command: command.poll() is None)
    assert refused.returncode == 1 and "others wait" in refused.stderr.read()
    assert running.metrics()
    for times in 1, 2:
        assert waiting.poll() is None
        running.configuration.write_text(content)
        eventually(lambda: len(told(running, "configuration read again")) == times)
    assert waiting.wait(60 * PATIENCE) == 0, waiting.stderr.read()


@pytest.mark.parametrize("blocks", ["configuration", "key"])
def test_a_server_ends_while_a_reload_waits_for_a_file(make_service, tmp_path, blocks):
    certificate_path, key = certificate(tmp_path)
    service = make_service({"server.tls_certificate": certificate_path, "server.tls_key": key})
    service.tls = trusting(certificate_path)
    service.start()
    make_fifo_of(key if blocks == "key" else service.configuration)
    command = start_reload(service)
    eventually(lambda: "reload" in threads_of(service))
    assert service.get("/api/v1/health").status == 200
    service.process.send_signal(signal.SIGTERM)
    assert service.process.wait(60 * PATIENCE) == 0
    assert command.wait(60 * PATIENCE) == 1 and "the server is ending" in command.stderr.read()


def test_a_reload_waits_for_a_server_that_is_starting(make_service):
    service = make_service(own_stores=True)
    service.platform.take_away()
    service.spawn()
    eventually(lambda: any("cannot be refreshed" in line["message"] for line in service.log_lines()), 30)
    assert unit_reloads(service).returncode == 0
    eventually(lambda: told(service, "configuration read again"))
    messages = [line["message"] for line in service.log_lines()]
    assert messages[:messages.index("configuration read again")].count("listening") == 2
    service.platform.bring_back()


def test_who_is_no_croupier_is_not_asked(running):
    assert "no croupier" in running.run("reload", os.getpid(), status=1).errors
    for word in ("0", "-1", "x", "99999999999"):
        running.run("reload", "--", word, status=2)
    running.run("reload", status=2)


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root to be somebody else")
def test_another_user_is_not_obeyed(running, tmp_path):
    ask = ("import socket, sys; s = socket.socket(socket.AF_UNIX); s.settimeout(20);"
           "s.connect(sys.argv[1]); sys.exit(len(s.recv(1)))")
    command = ["python3", "-c", ask, f"{running.environment['RUNTIME_DIRECTORY']}/{running.process.pid}.reload"]
    done = subprocess.run(command, user=65534, timeout=60 * PATIENCE, cwd="/", capture_output=True, text=True)
    assert "PermissionError" in done.stderr and not told(running, "configuration read again")
    assert subprocess.run(command, timeout=60 * PATIENCE, cwd="/").returncode == 1
    eventually(lambda: told(running, "configuration read again"))


def test_no_name_that_a_stranger_can_take_is_in_the_way(running):
    directory, process = Path(running.environment["RUNTIME_DIRECTORY"]), running.process.pid
    for word in ("reload", "upgrade"):
        with socket.socket(socket.AF_UNIX) as taken:  # an abstract name: whoever comes first has it
            taken.bind(f"\0croupier/{process}/{word}")
            running.run("reload", process, configuration=False)
    assert len(list(directory.glob(f"{process}.*"))) == 2
    running.stop()
    assert not list(directory.glob(f"{process}.*"))


def test_a_directory_that_others_may_enter_is_not_used(make_service, tmp_path):
    service = make_service()
    open_to_all = tmp_path / "run"
    open_to_all.mkdir()
    open_to_all.chmod(0o755)
    service.environment["RUNTIME_DIRECTORY"] = str(open_to_all)
    service.start()
    assert [line["command"] for line in told(service, "a command cannot ask this server")] == ["reload", "upgrade"]
    assert not list(open_to_all.iterdir())
    refused = service.run("reload", service.process.pid, configuration=False, status=1).errors
    assert "no croupier" in refused and "kill -HUP" in refused and "RUNTIME_DIRECTORY" in refused


SERVED = """
import os, socket
with socket.socket(socket.AF_UNIX) as served:
    served.bind(f"croupier/{os.getpid()}.reload")
    served.listen()
    print("listening", flush=True)
    asker, _ = served.accept()
    asker.send(b"+")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root to be somebody else")
def test_root_finds_a_server_of_another_user_by_its_session_directory(service):
    with tempfile.TemporaryDirectory() as session:
        os.chown(session, 65534, 65534)
        (place := Path(session) / "croupier").mkdir(mode=0o700)
        os.chown(place, 65534, 65534)
        with subprocess.Popen(["python3", "-c", SERVED], user=65534, cwd=session, stdout=subprocess.PIPE) as server:
            try:
                assert server.stdout.readline() == b"listening\n"
                del service.environment["RUNTIME_DIRECTORY"]
                assert "XDG_RUNTIME_DIR" in service.run("reload", server.pid, configuration=False, status=1).errors
                service.environment["XDG_RUNTIME_DIR"] = session
                service.run("reload", server.pid, configuration=False)
            finally:
                server.kill()
