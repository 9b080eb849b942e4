"""The machine of somebody who follows the documents: a directory that stands for /, and programs in front of PATH.

    machine = Machine()
    machine.run("sudo make install\n…")     # a script as it is printed; what it wrote
    machine.begin_demo()                    # what the examples of the API are about
    machine.remove()

Paths of the documents (/etc/croupier, /var/lib/croupier, /usr/local, /backup …) lead into the directory, and the ports
8080 and 9090 to free ones. Nothing else of a script is touched, but for the texts of `placeholders`. What a machine has
and a test may not use is played by small programs: sudo runs the command as whoever we are, systemctl starts, reloads and
ends a croupier of ours, sudoedit makes the settings that keep it in the directory.
"""

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import threading
from pathlib import Path

from croupier import BINARY, PATIENCE, ROOT, sanitizer_environment
from servers import free_port, work_directory

PATHS = re.compile(r"(?<![\w./])/(?=(?:etc/croupier|var/lib/croupier|var/backups/croupier|usr/local|backup|another-place)\b)")

PROGRAMS = {
    # No user is made on this machine, so nothing is given to one.
    "sudo": 'if [ "$1" = -u ]; then shift 2; fi\nexec "$@"',
    "chown": '[ "$1" = root:croupier ] && [ -e "$2" ]',
    "install": """
words=()
while [ $# -gt 0 ]; do
    case $1 in -o | -g) [ "$2" = croupier ] || exit 1; shift 2 ;; *) words+=("$1"); shift ;; esac
done
exec /usr/bin/install "${words[@]}"
""",
    # As `make install` has left the file.
    "systemd-tmpfiles": """
[ "$*" = '--create croupier.conf' ] || exit 1
while read -r type path mode owner; do
    [ "$type" != d ] || /usr/bin/install -d -m "$mode" "$MACHINE$path"
done <"$MACHINE/usr/local/lib/tmpfiles.d/croupier.conf"
""",
    # What has been built is installed; DESTDIR is the directory.
    "make": 'exec /usr/bin/make --no-print-directory -o build SETUP=: DESTDIR="$MACHINE" "$@"',
    "sudoedit": '[ "$1" = "$MACHINE/etc/croupier/croupier.conf" ] && cat "$MACHINE/settings" >>"$1"',
    "name-new-stores": """
read -r odds platform <"$MACHINE/new-stores" && sed -i 1d "$MACHINE/new-stores"
sed -i "s|^store = .*odds$|store = $odds|; s|^store = sqlite:.*|store = $platform|" "$MACHINE/etc/croupier/croupier.conf"
sed -i "s|^store = redis:.*|store = $odds|; s|^store = postgresql:.*|store = $platform|" "$MACHINE/etc/croupier/croupier.conf"
""",
    # The default configuration is the directory's, also where croupier is run out of the checkout.
    "croupier": """
case "$* " in *' -c '* | help* | *--help*) exec "$MACHINE/usr/local/bin/croupier" "$@" ;; esac
exec "$MACHINE/usr/local/bin/croupier" -c "$MACHINE/etc/croupier/croupier.conf" "$@"
""",
    # An answer that is an error is one to the test; and a server may still be starting.
    "curl": 'exec /usr/bin/curl --fail-with-body --retry 60 --retry-connrefused --retry-delay 1 "$@"',
    "journalctl": """
while getopts u:n:p: option; do [ $option != p ] || [ "$OPTARG" = warning ]; done
exec grep -E ' (error|warning) |"level":"(error|warning)"' "$MACHINE/journal"
""",
    "systemctl": 'echo "$*" >"$MACHINE/systemctl.asked" && read -r status <"$MACHINE/systemctl.answered" && exit "$status"',
}


class Systemd(threading.Thread):
    """Does what systemctl asks for, with the one service there is."""

    def __init__(self, machine):
        super().__init__(daemon=True)
        self.machine = machine
        self.process = None
        self.asked, self.answered = machine.directory / "systemctl.asked", machine.directory / "systemctl.answered"
        for path in (self.asked, self.answered):
            os.mkfifo(path)
        self.start()

    def run(self):
        while True:
            words = self.asked.read_text().split()
            if words == ["end"]:
                return
            done = self.act(words)
            self.answered.write_text("0\n" if done else "1\n")

    def act(self, words):
        actions = {"enable --now croupier": [self.begin], "start croupier": [self.begin], "stop croupier": [self.end],
                   "disable --now croupier croupier-backup.timer croupier-verify.timer": [self.end], "restart croupier": [self.end, self.begin],
                   "reload croupier": [self.reload], "daemon-reload": [], "status croupier": []}
        return all(act() for act in actions.get(" ".join(words), [lambda: False]))

    def begin(self):
        """Until it is ready (Type=notify), so that it has read its settings before the next command changes them."""
        notified = self.machine.directory / "notify"
        notified.unlink(missing_ok=True)
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.manager.bind(str(notified))
        self.manager.settimeout(0.1)
        with open(self.machine.journal, "ab") as journal:
            self.process = subprocess.Popen([self.machine.programs / "croupier", "serve"],
                                            env={**self.machine.environment, "NOTIFY_SOCKET": str(notified)},
                                            stdin=subprocess.DEVNULL, stdout=journal, stderr=journal,
                                            cwd=self.machine.directory)
        while self.process.poll() is None:
            with contextlib.suppress(TimeoutError):
                if b"READY=1" in self.manager.recv(4096):
                    return True
        return False

    def reload(self):
        self.process.send_signal(signal.SIGHUP)
        return self.process.poll() is None

    def end(self):
        process, self.process = self.process, None
        if process is None:
            return True
        process.terminate()
        status = process.wait(60 * PATIENCE)
        self.manager.close()
        if status == 0:
            return True
        with open(self.machine.journal, "a") as journal:  # systemctl itself says no more than that it failed
            journal.write(f"croupier ended with {status}\n")
        return False

    def close(self):
        self.end()
        self.asked.write_text("end\n")
        self.join()


class Machine:
    def __init__(self):
        self.directory = work_directory("machine")
        self.programs = self.directory / "programs"
        self.checkout = self.directory / "checkout"
        self.work = self.directory / "work"
        for path in (self.programs, self.checkout / "build", self.work, self.directory / "etc", self.directory / "var/lib",
                     self.directory / "backup", self.directory / "another-place"):
            path.mkdir(parents=True)
        self.journal = self.directory / "journal"
        self.port, self.operator_port = free_port(), free_port()
        self.placeholders = {}
        self._make_programs()
        for name in ("Makefile", "man", "dist", "kit", "docs", "examples", "tools", "tests"):
            (self.checkout / name).symlink_to(ROOT / name)
        for name in ("croupier", "tests"):
            (self.checkout / "build" / name).symlink_to(BINARY.parent / name)
        store, secrets = self.directory / "var/lib/croupier", "secrets.key"
        self.settings = self.directory / "settings"
        self.settings.write_text(
            f"\n[server]\nlisten = 127.0.0.1:{self.port}\n[operator]\nlisten = 127.0.0.1:{self.operator_port}\n"
            f"[odds]\nstore = embedded:{store}/odds\ntimeout_ms = 30000\n"
            f"[platform]\nstore = sqlite:{store}/platform.db\ntimeout_ms = 30000\n[casino]\nsecrets_key_file = {store}/{secrets}\n")
        self.environment = sanitizer_environment()
        for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
            self.environment.pop(name, None)
        self.environment.update(MACHINE=str(self.directory), PATH=f"{self.programs}:{os.environ['PATH']}",
                                BASE=f"http://127.0.0.1:{self.port}", CROUPIER_SERVER_LISTEN=f"127.0.0.1:{self.port}",
                                CROUPIER_OPERATOR_LISTEN=f"127.0.0.1:{self.operator_port}")
        self.systemd = Systemd(self)
        self.demo = None

    def _make_programs(self):
        programs = {name: f"#!/bin/bash\n{text.strip()}\n" for name, text in PROGRAMS.items()}
        for name, text in programs.items():
            (self.programs / name).write_text(text)
            (self.programs / name).chmod(0o755)

    def remove(self):
        self.end_demo()
        self.systemd.close()

    def run(self, script, directory=None):
        """Runs it as somebody types it, up to the first command that fails; what it wrote to standard output."""
        script = PATHS.sub(f"{self.directory}/", script)
        script = re.sub("http://127.0.0.1:(8080|8181)", f"http://127.0.0.1:{self.port}", script)
        script = script.replace("http://127.0.0.1:9090", f"http://127.0.0.1:{self.operator_port}")
        for printed, meant in self.placeholders.items():
            script = script.replace(printed, meant)
        output, errors = self.directory / "output", self.directory / "errors"  # which a server may go on to hold open
        with open(output, "wb") as out, open(errors, "wb") as err:
            done = subprocess.run(["/bin/bash", "-euo", "pipefail", "-c", script], stdin=subprocess.DEVNULL, stdout=out,
                                  stderr=err, cwd=directory or self.work, env=self.environment, timeout=120 * PATIENCE)
        assert done.returncode == 0, (f"{script}\nended with {done.returncode}:\n{output.read_text()}{errors.read_text()}"
                                      f"\nof the journal:\n{self.journal.read_text()[-2000:] if self.journal.exists() else None}")
        return output.read_text()

    def ask(self, *words):
        return self.run(shlex.join(words)).strip()

    def ask_api(self, path, check=True, **document):
        """GET, or POST of a document, with $KEY. check=False: "" when it is refused."""
        post = ["-H", "Content-Type: application/json", "-d", json.dumps(document)] if document else []
        asked = shlex.join(["curl", "-s", "-o", "answer", *post, f"{self.environment['BASE']}{path}"])
        return self.run(f'{asked} -H "Authorization: Bearer $KEY" && cat answer{"" if check else " || true"}')

    # ---- a demo, which the examples of the API are about ----

    def begin_demo(self):
        """Serves a demo at $BASE with its key in $KEY; what it tells with --json."""
        self.demo = subprocess.Popen([BINARY, "demo", "--dir", self.directory / "demo", "--listen", f"127.0.0.1:{self.port}", "--json"],
                                     env=self.environment, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL, text=True)
        told = json.loads(self.demo.stdout.readline())
        self.environment["KEY"] = told["key"]
        return told

    def end_demo(self):
        demo, self.demo = self.demo, None
        if demo is not None:
            demo.send_signal(signal.SIGINT)
            demo.communicate(timeout=30 * PATIENCE)
