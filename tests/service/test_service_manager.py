"""What a service manager is informed of (sd_notify(3)), and what the unit asks systemd for."""

import contextlib
import ctypes
import os
import queue
import re
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

from croupier import PATIENCE, ROOT, eventually

pytestmark = pytest.mark.depends_on("platform")

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17


class Manager:
    """The socket of $NOTIFY_SOCKET: what has come, in its order, and each as a dictionary. Like a manager it reads at
    once: the kernel holds ten of them (net.unix.max_dgram_qlen), which are a second's."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(f"\0croupier-test-{os.getpid()}-{id(self)}")
        self.come = queue.Queue()
        self.reads = threading.Event()
        self.reads.set()
        threading.Thread(target=self.read, daemon=True).start()
        self.environment = {"NOTIFY_SOCKET": "@" + self.socket.getsockname().decode()[1:], "WATCHDOG_USEC": "200000"}

    def read(self):
        with contextlib.suppress(OSError):  # it was closed
            while message := self.socket.recv(4096):
                self.come.put(dict(line.split("=", 1) for line in message.decode().splitlines()))
                self.reads.wait()

    def hear(self):
        return self.come.get(timeout=60 * PATIENCE)

    def hear_but(self, *unwanted):
        """The next that is none of these."""
        def wanted():
            message = self.hear()
            return message if not set(unwanted) & set(message) else None

        return eventually(wanted, 30)

    def pending(self):
        """What has come already."""
        found = []
        with contextlib.suppress(queue.Empty):
            while True:
                found.append(self.come.get_nowait())
        return found

    def close(self):
        self.reads.set()
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


@pytest.fixture
def manager():
    manager = Manager()
    yield manager
    manager.close()


def test_a_manager_hears_of_the_start_of_reloads_and_of_the_end(make_service, manager):
    service = make_service(environment=manager.environment)
    service.start()
    assert manager.hear() == {"READY": "1"}
    assert manager.hear() == {"WATCHDOG": "1"}

    for setting, status in ("debug", 0), ("nonsense", 1):
        service.configure({"log.level": setting})
        service.run("reload", service.process.pid, configuration=False, status=status)
        reloading = manager.hear_but("WATCHDOG")
        assert reloading.pop("RELOADING") == "1" and re.fullmatch(r"[1-9]\d*", reloading.pop("MONOTONIC_USEC"))
        assert reloading == {} and manager.hear_but("WATCHDOG") == {"READY": "1"}

    service.stop()
    assert manager.hear_but("WATCHDOG") == {"STOPPING": "1"}
    assert {"READY": "1"} not in manager.pending()


def test_a_higher_level_of_the_log_says_less(make_service, manager):
    service = make_service({"log.level": "error"}, environment=manager.environment)
    service.spawn()
    assert manager.hear() == {"READY": "1"}
    assert "listening" not in service.log_text()
    service.stop()


def test_what_matters_is_sent_to_a_manager_that_has_not_read_for_a_while(make_service, manager):
    """Its queue is full, of WATCHDOG=1 or of others' notices."""
    service = make_service(environment={**manager.environment, "WATCHDOG_USEC": "0"})
    service.start()
    assert manager.hear() == {"READY": "1"}
    manager.reads.clear()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                other.sendto(b"STATUS=full", manager.socket.getsockname())
    reload = threading.Thread(target=lambda: service.run("reload", service.process.pid, configuration=False))
    reload.start()
    time.sleep(0.5)  # meanwhile it cannot send; should it come to that later only, the test says less
    manager.reads.set()
    assert "RELOADING" in manager.hear_but("STATUS") and manager.hear_but("STATUS") == {"READY": "1"}
    reload.join()
    service.stop()


@contextlib.contextmanager
def stopped(thread):
    """Stops a thread of another process, whose other threads go on, until the end of the block: a process that a
    tracer still holds a thread of does not end, not even when it is killed."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(PTRACE_SEIZE, thread, None, None) != 0:
        pytest.skip(f"no thread may be stopped here: {os.strerror(ctypes.get_errno())}")
    assert libc.ptrace(PTRACE_INTERRUPT, thread, None, None) == 0
    os.waitpid(thread, 0x40000000)  # __WALL: it has stopped
    try:
        yield
    finally:
        assert libc.ptrace(PTRACE_DETACH, thread, None, None) == 0


def test_no_watchdog_is_sent_while_a_serving_thread_hangs(make_service, manager):
    service = make_service(environment=manager.environment)
    service.start()
    tasks = Path(f"/proc/{service.process.pid}/task")
    [thread] = [int(task.name) for task in tasks.iterdir() if (task / "comm").read_text() == "worker-1\n"]

    def complaints():
        return [line for line in service.log_lines() if line["message"] == "serving threads do not answer the watchdog"]

    def is_silent():
        manager.pending()
        before = len(complaints())
        time.sleep(0.6)  # several periods of the watchdog
        service.metrics()  # the main thread goes on, and its timer with it
        return manager.pending() == [] and before == len(complaints()) > 0

    with stopped(thread):
        eventually(is_silent, 30)  # a busy machine may keep the other thread from an answer, and complain of that too
        assert complaints()[-1]["level"] == "error" and complaints()[-1]["threads"] in (1, 2)
        assert service.word("/live") == (503, "stuck") and service.word("/ready") == (200, "ok")
    assert manager.hear() == {"WATCHDOG": "1"}
    eventually(lambda: service.word("/live") == (200, "ok"))
    service.stop()


def test_a_watchdog_of_another_process_is_not_ours(make_service, manager):
    service = make_service(environment={**manager.environment, "WATCHDOG_PID": "1"})
    service.start()
    assert manager.hear() == {"READY": "1"}
    service.stop()
    assert manager.hear() == {"STOPPING": "1"}


def test_without_a_manager_that_listens_the_service_serves(make_service, manager, tmp_path):
    service = make_service(environment={**manager.environment, "NOTIFY_SOCKET": str(tmp_path / "none")})
    service.start()
    service.stop()
    warnings = [line for line in service.log_lines() if line["message"] == "the service manager cannot be notified"]
    assert len(warnings) == 1


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_the_unit_leaves_the_service_little_to_do_harm_with(tmp_path):
    unit = tmp_path / "croupier.service"
    unit.write_text((ROOT / "dist" / "croupier.service").read_text().replace("@bindir@/croupier", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=14", "--no-pager", str(unit)],
                          capture_output=True, text=True, timeout=60 * PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    [exposure] = re.findall(r"Overall exposure level for croupier\.service: ([\d.]+)", done.stdout)
    assert float(exposure) <= 1.4, done.stdout  # 1.2, but for setpriority (LimitNICE=)
