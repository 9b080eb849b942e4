"""The reference deployment (dist/reference, docs/deployment.md), started on loopback.

    with Deployment(directory) as deployment:
        deployment.start()
        deployment.address              # HAProxy's, for clients
        deployment.hosts["redis-1"].kill()

The files are used as they are, but for what a test may not take: every address becomes 127.0.0.1, every
port a free one, directories are the test's, and each CHANGE-ME a password made for the run.
"""

import configparser
import os
import re
import secrets
import shutil
import signal
import subprocess
from pathlib import Path

import servers
from croupier import ROOT, Service, eventually

FILES = ROOT / "dist" / "reference"
ADDRESS = r"10\.20\.0\.\d+"


class Host:
    """One process of the deployment: in a directory of its own, which the guardian of servers.py sees."""

    def __init__(self, deployment, name, address):
        self.deployment = deployment
        self.name = name
        self.address = address
        self.directory = servers.Nests.get().make_directory(name)
        self.process = None

    def file(self, name, text):
        path = self.directory / name
        path.write_text(text)
        return path

    def run(self, *command, **options):
        assert self.process is None, f"{self.name} runs already"
        self.command = command
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(list(map(str, command)), cwd=self.directory, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, start_new_session=True, **options)

    def kill(self):
        process, self.process = self.process, None
        process.kill()
        process.wait()

    def log_text(self):
        return (self.directory / "log").read_text("utf-8", "replace")


    def processes(self):
        return servers.Server.processes(self)


class Proxy(Host):
    """An HAProxy with this configuration."""

    def start(self, text):
        program = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin")
        assert program, "no haproxy here: run tools/setup test"
        self.run(program, "-db", "-f", self.file("haproxy.cfg", text))


class Database(Host):
    """A PostgreSQL whose postgresql.conf includes the reference's file."""

    programs = property(lambda self: servers.postgres_programs())

    def __init__(self, deployment, name, address, file):
        super().__init__(deployment, name, address)
        self.data = self.directory / "data"
        self.file_name = file
        self.account = servers.Postgres.account() if os.getuid() == 0 else None
        if self.account:
            os.chown(self.directory, self.account.pw_uid, self.account.pw_gid)

    @property
    def credentials(self):
        if not self.account:
            return {}
        return {"user": self.account.pw_uid, "group": self.account.pw_gid, "extra_groups": []}

    def tool(self, program, *arguments, input=None, **environment):
        done = subprocess.run([str(self.programs / program), *map(str, arguments)], input=input, capture_output=True,
                              text=True, cwd=self.directory, env={**os.environ, "LC_ALL": "C", **environment},
                              timeout=4 * servers.PATIENCE, **self.credentials)
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"
        return done.stdout

    def configure(self):
        hba = self.deployment.rendered("pg_hba.conf", self.address)
        if not self.account:  # then the operating system's user is not called postgres
            hba = hba.replace("peer", "trust")
        self.file("pg_hba.conf", hba).chmod(0o644)
        self.file("croupier.conf", self.deployment.rendered(self.file_name, self.address)).chmod(0o644)
        conf = self.data / "postgresql.conf"
        conf.write_text(f"unix_socket_directories = '{self.directory}'\ndynamic_shared_memory_type = mmap\n"
                        f"shared_buffers = 32MB\nhba_file = '{self.directory}/pg_hba.conf'\n"
                        f"include '{self.directory}/croupier.conf'\n")

    def start(self):
        self.run(self.programs / "postgres", "-D", self.data, env={**os.environ, "LC_ALL": "C"}, **self.credentials)
        eventually(self.is_ready, 60)

    def is_ready(self):
        assert self.process.poll() is None, self.log_text()
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[7].strip() in ("ready", "standby")

    def sql(self, statements, database="postgres"):
        return self.tool("psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", self.directory, "-p",
                         self.deployment.port(self.address, 5432), "-U", "postgres", "-d", database, "-f", "-",
                         input=statements).strip()

    def kill(self):
        """All its processes at once: the machine is off."""
        servers.Server.signal_all(self, signal.SIGSTOP)  # so that none sees another go
        servers.Server.signal_all(self, signal.SIGKILL)
        self.process.wait()
        self.process = None
        servers.Postgres.remove_shared_memory(self)


class Instance(Service):
    """A server with the reference's settings, whose commands have more time: a machine that runs tests is busy."""

    def run(self, *arguments, **options):
        served = self.environment
        self.environment = {**served, "CROUPIER_PLATFORM_TIMEOUT_MS": "30000"}
        try:
            return super().run(*arguments, **options)
        finally:
            self.environment = served


class Deployment:
    def __init__(self, directory):
        self.directory = Path(directory)
        self.ports = {}
        self.passwords = {}
        self.hosts = {}
        self.croupiers = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for service in self.croupiers:
            if service.process is not None:
                service.kill()
        for host in self.hosts.values():
            if host.process is not None:
                host.kill()
            shutil.rmtree(host.directory, ignore_errors=True)

    # ---- the files ------------------------------------------------------------------------------------

    def port(self, address, port):
        return self.ports.setdefault((address, int(port)), servers.free_port())

    def rendered(self, name, address):
        """A file of the reference, as the machine with this address has it, moved to loopback."""
        text = (FILES / name).read_text()
        if name == "croupier.conf":
            text = text.replace("listen = 10.20.0.11", f"listen = {address}").replace("127.0.0.1:9090", "127.0.0.1:0")
            text = text.replace("/var/lib/croupier", str(self.directory))
        if name == "sentinel.conf":
            text = text.replace("bind 10.20.0.21", f"bind {address}")
        local = lambda match: f"{match[1]}127.0.0.1{match[3]}{self.port(match[2], match[4])}"
        text = re.sub(rf"()({ADDRESS})([: ])(\d+)\b", local, text)
        text = re.sub(rf"(host=)({ADDRESS})( port=)(\d+)\b", local, text)
        text = re.sub(r"^(port(?: =)? )(\d+)$", lambda match: match[1] + str(self.port(address, match[2])), text,
                      flags=re.MULTILINE)
        text = re.sub(ADDRESS, "127.0.0.1", text)
        return re.sub(r"CHANGE-ME-[A-Z]+", lambda match: self.password(match[0]), text)

    def password(self, name):
        return self.passwords.setdefault(name, secrets.token_urlsafe(12))

    # ---- the machines ---------------------------------------------------------------------------------

    def start(self):
        self.start_databases()
        self.start_redis()
        self.start_croupiers()
        self.start_proxy()
        return self

    def add(self, host):
        self.hosts[host.name] = host
        return host

    def start_databases(self):
        primary = self.add(Database(self, "postgresql-1", "10.20.0.31", "postgresql-1.conf"))
        primary.tool("initdb", "-D", primary.data, "-A", "peer", "-U", "postgres", "-E", "UTF8", "--locale=C",
                     "--no-instructions", "-N")
        primary.configure()
        primary.start()
        primary.sql(self.rendered("postgresql.sql", primary.address))
        standby = self.add(Database(self, "postgresql-2", "10.20.0.32", "postgresql-2.conf"))
        standby.tool("pg_basebackup", "-h", "127.0.0.1", "-p", self.port(primary.address, 5432), "-U", "croupier_replica",
                     "-D", standby.data, "-X", "stream", "-C", "-S", "croupier_standby", "-c", "fast",
                     PGPASSWORD=self.password("CHANGE-ME-STANDBY"))
        (standby.data / "standby.signal").touch()
        standby.configure()
        standby.start()
        eventually(lambda: primary.sql("SELECT sync_state FROM pg_stat_replication") == "sync", 30)

    def start_redis(self):
        program = servers.redis_server()
        for number, address in ((1, "10.20.0.21"), (2, "10.20.0.22")):
            host = self.add(Host(self, f"redis-{number}", address))
            text = self.rendered(f"redis-{number}.conf", address).replace("/var/lib/redis", str(host.directory))
            host.run(program, host.file("redis.conf", text))
        for number, address in enumerate(("10.20.0.21", "10.20.0.22", "10.20.0.23"), 1):
            host = self.add(Host(self, f"sentinel-{number}", address))
            text = self.rendered("sentinel.conf", address).replace("/var/lib/redis", str(host.directory))
            host.run(program, host.file("sentinel.conf", text), "--sentinel")
        # Each of them: one that leads a failover and knows of no replica gives it up, and all wait 20 s.
        for number in (1, 2, 3):
            eventually(lambda: self.knows_all(number), 30)
        eventually(lambda: self.ask_redis("INFO", "replication", wanted="min_slaves_good_slaves:1"), 30)

    def knows_all(self, number):
        """Whether this Sentinel knows the two others, and the replica as one that works."""
        told = self.ask_sentinel("master", "croupier", number=number)
        replica = self.ask_sentinel("replicas", "croupier", number=number)
        return ("num-other-sentinels 2" in told and "num-slaves 1" in told and " flags slave " in replica
                and "master-link-status ok" in replica)

    def ask_redis(self, *command, wanted, name="redis-1", user="croupier", password="CHANGE-ME-ODDS"):
        """Whether a Redis says what is wanted."""
        host = self.hosts[name]
        done = subprocess.run(["redis-cli", "-p", str(self.port(host.address, 6379)), "--user", user,
                               "--no-auth-warning", "-a", self.password(password), *command],
                              capture_output=True, text=True)
        return wanted in done.stdout

    def ask_sentinel(self, *words, number=1):
        """What a Sentinel says, in one line."""
        host = self.hosts[f"sentinel-{number}"]
        done = subprocess.run(["redis-cli", "-p", str(self.port(host.address, 26379)), "--user", "peer", "--no-auth-warning",
                               "-a", self.password("CHANGE-ME-PEER"), "SENTINEL", *words], capture_output=True, text=True)
        return " ".join(done.stdout.split())

    def start_croupiers(self):
        for number, address in ((1, "10.20.0.11"), (2, "10.20.0.12")):
            parsed = configparser.ConfigParser(interpolation=None, inline_comment_prefixes=None)
            parsed.read_string(self.rendered("croupier.conf", address))
            settings = {f"{section}.{key}": value for section in parsed.sections()
                        for key, value in parsed[section].items()}
            service = Instance(self.directory / f"croupier-{number}", settings, stores=False)
            self.croupiers.append(service)
        # On a busy machine the primary may miss its share of the time that a call may take.
        eventually(lambda: self.croupiers[0].run("migrate", status=None).returncode == 0)
        for service in self.croupiers:
            eventually(lambda: service.run("check", status=None).returncode == 0)
            service.start()

    def start_proxy(self):
        host = self.add(Proxy(self, "haproxy", "10.20.0.5"))
        host.start(self.rendered("haproxy.cfg", host.address))
        self.address = ("127.0.0.1", self.port(host.address, 8443))
        eventually(self.answers, 10)

    def answers(self):
        assert self.hosts["haproxy"].process.poll() is None, self.hosts["haproxy"].log_text()
        try:
            return self.croupiers[0].request("GET", "/api/v1/health", address=self.address).status == 200
        except OSError:
            return False

    def promote_standby(self):
        """Step 2 of the runbook."""
        standby = self.hosts["postgresql-2"]
        standby.tool("pg_ctl", "promote", "-D", standby.data)
