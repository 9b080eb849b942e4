"""croupier backup, croupier restore: nothing that was answered is missing, and half a backup is none."""

import hashlib
import json
import os
import shutil
import stat
import subprocess
import threading
import time

import pytest

from croupier import BINARY, PATIENCE, REPORT, Service, eventually, match_odds, row
from test_upgrade import CUSTOMER, NEWEST, OlderFile
from wallet_model import add_player, balance, credit, send

embedded = pytest.mark.only("embedded", "sqlite")

EVENT = "34000001"


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A running service with odds and two players, and a backup of it with all that there can be."""
    service = Service(tmp_path_factory.mktemp("house"))
    try:
        service.customer = service.add_customer("Casino", options=["--casino"])
        service.players = [add_player(service, service.customer, name) for name in ("alice", "bob")]
        service.publish("cricket", [row(EVENT)], {EVENT: match_odds()})
        service.start()
        service.await_admission(service.customer.key)
        assert send(service, service.customer.key, credit(service.players[0], "first", 500)).status == 200
        service.backup = service.directory / "whole"
        service.run("backup", service.backup, "--with-secrets-key")
        yield service
    finally:
        service.remove()


def elsewhere(directory):
    """A configuration whose stores are not there."""
    return Service(directory / "elsewhere", stores=False)


def files(directory):
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.name != "croupier.conf")


class Player(threading.Thread):
    """Sends one credit after the other until it is to stop; `answered` are the ids of those that were."""

    def __init__(self, house, player):
        super().__init__()
        self.house, self.player, self.answered, self.over = house, player, [], threading.Event()

    def run(self):
        while not self.over.is_set():
            identity = f"{self.player}-{len(self.answered)}"
            if send(self.house, self.house.customer.key, credit(self.player, identity, 7)).status != 200:
                return
            self.answered.append(identity)


@embedded
def test_everything_that_was_answered_before_a_backup_is_in_it_and_is_served_from_it(house, tmp_path):
    players = [Player(house, player) for player in house.players]
    for player in players:
        player.start()
    try:
        eventually(lambda: all(len(player.answered) >= 20 for player in players), 30)
        before = [list(player.answered) for player in players]
        made = house.ask("backup", tmp_path / "backup")
        meanwhile = [len(player.answered) for player in players]
        eventually(lambda: all(len(player.answered) > count for player, count in zip(players, meanwhile)), 30)
    finally:
        for player in players:
            player.over.set()
            player.join()
    assert [file["name"] for file in made["files"]] == ["platform.db", "odds.mdb"]
    other = elsewhere(tmp_path)
    shutil.copy(house.directory / "secrets.key", other.directory)
    restored = other.ask("restore", tmp_path / "backup", "--with-odds")
    assert restored["restored"] == ["platform.db", "odds.mdb"] and restored["sound"]
    assert restored["entries"] >= 1 + sum(map(len, before))
    other.start()
    try:
        for player, answered in zip(players, before):
            for identity in answered[-20:] + answered[:1]:
                again = send(other, house.customer.key, credit(player.player, identity, 7))
                assert again.status == 200 and again.header("Idempotent-Replayed") == "true", again
        owned = {player: send(other, house.customer.key, balance(player)).json()["balance_minor"]
                 for player in house.players}
        assert sum(owned.values()) == 500 + 7 * (restored["entries"] - 1)
        path = f"/api/v1/cricket/events/{EVENT}"
        assert (answer := other.get(path, house.customer.key)).status == 200
        assert answer.body == house.get(path, house.customer.key).body
    finally:
        other.remove()


@embedded
def test_what_a_backup_holds_and_who_may_read_it(house, tmp_path):
    assert files(house.backup) == ["manifest.json", "odds.mdb", "platform.db", "secrets.key"]
    manifest = json.loads((house.backup / "manifest.json").read_text())
    for file in manifest["files"]:
        content = (house.backup / file["name"]).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file["bytes"], file["sha256"])
    assert manifest["schema"] == NEWEST["sqlite"]
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in [house.backup, *house.backup.iterdir()])
    (tmp_path / "empty").mkdir()
    house.run("backup", f"{tmp_path}/empty/", "--no-odds")
    assert files(tmp_path) == ["empty", "empty/manifest.json", "empty/platform.db"]


@embedded
def test_the_age_of_the_last_backup_is_a_metric(house, tmp_path):
    other = elsewhere(tmp_path)
    other.run("migrate")
    other.start()
    try:
        assert other.metrics()["croupier_backup_age_seconds"] == float("inf")
        other.run("backup", tmp_path / "full", "--no-odds")
        assert 0 <= other.metrics()["croupier_backup_age_seconds"] < 3600
        note = other.directory / "platform.db-backed-up"
        os.utime(note, (time.time() - 90000,) * 2)
        age_s = other.metrics()["croupier_backup_age_seconds"]
        assert 90000 <= age_s < 93600
        other.run("backup", tmp_path / "full", "--no-odds", status=1)  # is not a backup
        assert other.metrics()["croupier_backup_age_seconds"] >= age_s
        note.unlink()
        note.mkdir()
        assert "does not count this backup" in other.run("backup", tmp_path / "next", "--no-odds").errors
        note.rmdir()
    finally:
        other.remove()


@embedded
@pytest.mark.parametrize("target, why", [
    ("full", "is not empty"), ("file", "Not a directory"), ("file/in", "Not a directory"), ("no/where", "No such file"),
    ("/proc", "is not empty"), (".", "is not empty"), ("", "No such file")])
def test_a_backup_is_made_in_a_new_directory_alone(house, tmp_path, target, why):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "photo").write_text("mine")
    (tmp_path / "file").write_text("mine")
    done = house.run("backup", target if target == "" else tmp_path / target, "--no-odds", status=1)
    assert why in done.errors
    assert files(tmp_path) == ["file", "full", "full/photo"]


@embedded
def test_without_the_odds_store_the_money_can_be_backed_up(house, tmp_path):
    there = house.settings["odds", "store"]
    try:
        house.configure({"odds.store": f"embedded:{tmp_path}/not-yet"})
        done = house.run("backup", tmp_path / "new")
        assert f"note: there are no odds yet in {tmp_path}/not-yet" in done.errors
        assert "platform.db" in done.text and "odds.mdb" not in done.text
        shutil.rmtree(tmp_path / "new")
        (tmp_path / "damaged").write_text("no directory")
        house.configure({"odds.store": f"embedded:{tmp_path}/damaged"})
        assert "--no-odds" in house.run("backup", tmp_path / "backup", status=1).errors
        assert files(tmp_path) == ["damaged"]
        house.run("backup", tmp_path / "backup", "--no-odds")
    finally:
        house.configure({"odds.store": there})


# ---- restoring -------------------------------------------------------------------------------------------------------

@embedded
def test_restoring_replaces_nothing(house, tmp_path):
    other = elsewhere(tmp_path)
    for name in ("platform.db", "platform.db-wal", "platform.db-shm", "platform.db-ids", "secrets.key",
                 "platform.db.restoring"):
        path = other.platform.path.parent / name if name != "secrets.key" else other.directory / name
        path.write_text("mine")
        before = files(other.directory)
        done = other.run("restore", house.backup, status=1)
        assert str(path) in done.errors, done.errors
        assert files(other.directory) == before and path.read_text() == "mine"
        path.unlink()
    shutil.copy(house.directory / "secrets.key", other.directory)  # the same one
    restored = other.ask("restore", house.backup)
    assert restored["restored"] == ["platform.db"]
    assert (other.directory / "secrets.key").read_bytes() == (house.directory / "secrets.key").read_bytes()
    assert "is there" in other.run("restore", house.backup, status=1).errors


@embedded
@pytest.mark.parametrize("setting, name", [("platform.store", "platform.db"), ("casino.secrets_key_file", "secrets.key")])
def test_a_place_that_is_not_there_is_not_taken_for_damage_of_the_backup(house, tmp_path, setting, name):
    other = elsewhere(tmp_path)
    before = files(other.directory)
    path = f"{tmp_path}/new/{name}"
    other.configure({setting: f"sqlite:{path}" if name == "platform.db" else path})
    done = other.run("restore", house.backup, status=1)
    assert f"{tmp_path}/new: cannot be used (No such file or directory); make it first" in done.errors, done.errors
    assert files(other.directory) == before
    (tmp_path / "new").mkdir()
    assert name in other.ask("restore", house.backup)["restored"]


@embedded
def test_a_damaged_backup_is_refused_and_leaves_nothing(house, tmp_path):
    other = elsewhere(tmp_path)
    empty = files(other.directory)

    def refused(damage, *options):
        copy = tmp_path / "copy"
        shutil.copytree(house.backup, copy)
        damage(copy)
        done = other.run("restore", copy, "--with-odds", status=1)
        shutil.rmtree(copy)
        assert [name for name in files(other.directory) if not (other.directory / name).is_dir()] == empty
        return done.errors

    def flip(name, at):
        def damage(copy):
            content = bytearray((copy / name).read_bytes())
            content[at] ^= 1
            (copy / name).write_bytes(content)
        return damage

    def edit(was, becomes):
        return lambda copy: (copy / "manifest.json").write_text((copy / "manifest.json").read_text().replace(was, becomes))

    for name in ("platform.db", "odds.mdb", "secrets.key"):
        assert "damaged" in refused(flip(name, -1))
        assert "damaged" in refused(lambda copy: os.truncate(copy / name, 20))
        missing = refused(lambda copy: (copy / name).unlink())
        assert f"/{name}: is not there" in missing and ("secrets_key_file" in missing) == (name == "secrets.key")
    assert "is no backup" in refused(lambda copy: (copy / "manifest.json").unlink())
    assert "a directory that croupier backup made" in other.run("restore", house.backup / "platform.db", status=1).errors
    for text in ("", "{}", "[]", "null"):
        assert "manifest is damaged" in refused(lambda copy: (copy / "manifest.json").write_text(text))
    assert "newer version" in refused(edit('"format": 1', '"format": 2'))
    assert "manifest is damaged" in refused(edit("platform.db", "../../etc/passwd"))
    assert "manifest is damaged" in refused(edit("odds.mdb", "platform.db"))
    assert "manifest is damaged" in refused(edit('"sha256": "', '"sha256": "x'))


@embedded
def test_no_ledger_is_begun_beside_a_restore_that_broke_off(house, tmp_path):
    other = elsewhere(tmp_path)
    left = other.platform.path.with_name(other.platform.path.name + ".restoring")
    left.write_bytes(b"half of it")
    assert f"{left.name}: a restore broke off" in other.run("migrate", status=1).errors and not other.platform.path.exists()
    left.unlink()
    other.run("restore", house.backup)


@embedded
def test_a_backup_of_an_older_schema_is_brought_up_and_one_of_a_newer_is_not_served(house, tmp_path):
    older = OlderFile(tmp_path / "older")
    backup = tmp_path / "backup"
    backup.mkdir()
    shutil.copy(older.path, backup / "platform.db")
    content = (backup / "platform.db").read_bytes()
    (backup / "manifest.json").write_text(json.dumps({
        "format": 1, "program": "croupier 0.1.0", "made_at": "2026-11-23T00:00:00.000Z", "schema": older.schema, "files": [{
            "name": "platform.db", "as_of": "2026-11-23T00:00:00.000Z", "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest()}]}))
    other = elsewhere(tmp_path)
    restored = other.ask("restore", backup)
    assert (restored["schema_before"], restored["schema"]) == (older.schema, NEWEST["sqlite"])
    assert [customer["id"] for customer in other.ask("customer", "list")][0] == CUSTOMER


# ---- what breaks off -------------------------------------------------------------------------------------------------

def run_injected(house, inject, *arguments):
    """A command whose system calls fail, or kill it, as strace's `inject` says."""
    done = subprocess.run(
        ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={inject.split(':')[0]}", "-e", f"inject={inject}",
         str(BINARY), *map(str, arguments), "-c", str(house.configuration)], capture_output=True,
        env={**house.environment, "ASAN_OPTIONS": "detect_leaks=0"}, cwd=house.directory, timeout=60 * PATIENCE)
    text = done.stderr.decode()
    if "ptrace" in text:
        pytest.skip("strace may not trace here")
    assert not REPORT.search(text), text
    return done.returncode, text


@embedded
@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not there")
@pytest.mark.parametrize("calls, counts", [("fsync,fdatasync", range(1, 9, 2)), ("pwrite64", [1, 20]), ("write", [1, 3]),
                                           ("rename", [1]), ("rename:exit", [1])])
def test_a_backup_that_is_killed_does_not_look_whole(house, tmp_path, calls, counts):
    for count in counts:
        calls, _, moment = calls.partition(":")
        run_injected(house, f"{calls}:signal=SIGKILL:when={count}", "backup", tmp_path / "backup")
        for left in tmp_path.iterdir():
            if left.name == "backup":  # it was killed after all was done
                assert set(files(left)) == {"manifest.json", "odds.mdb", "platform.db"}
            else:
                assert left.name.startswith("backup.unfinished-")
            shutil.rmtree(left)


def number_of_write(house, directory, name):
    """Which of the writes of the command's first thread is the first one into that file of a backup."""
    trace, backup = directory / "trace", directory / "traced"
    subprocess.run(["strace", "-f", "-y", "-qq", "-o", trace, "-e", "trace=write", BINARY, "backup", backup, "-c", house.configuration],
                   env={**house.environment, "ASAN_OPTIONS": "detect_leaks=0"}, cwd=house.directory, timeout=60 * PATIENCE)
    lines = [line.split(maxsplit=1) for line in trace.read_text().splitlines()]
    writes = [call for thread, call in lines if thread == lines[0][0] and call.startswith("write(")]
    shutil.rmtree(backup)
    trace.unlink()
    return next(number for number, call in enumerate(writes, 1) if f"/{name}>" in call)


@embedded
@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not there")
@pytest.mark.parametrize("inject", [
    "pwrite64:error=ENOSPC:when=20", "write:error=ENOSPC:when=odds.mdb", "write:error=ENOSPC:when=manifest.json",
    "fsync,fdatasync:error=EIO:when=1", "fsync,fdatasync:error=EIO:when=4", "rename:error=EACCES", "mkdir:error=EACCES"])
def test_a_backup_that_cannot_be_written_says_so_and_leaves_nothing(house, tmp_path, inject):
    before, of_file, name = inject.partition("when=")
    if name in ("odds.mdb", "manifest.json"):
        inject = f"{before}{of_file}{number_of_write(house, tmp_path, name)}"
    code, said = run_injected(house, inject, "backup", tmp_path / "backup")
    assert code == 1 and "croupier backup: " in said, said
    assert files(tmp_path) == []


@embedded
@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not there")
@pytest.mark.parametrize("inject", ["fsync:error=EIO:when=1", "fsync:error=EIO:when=5", "link:error=EIO:when=2",
                                    "write:error=ENOSPC:when=2"])
def test_a_restore_that_cannot_be_written_leaves_nothing(house, tmp_path, inject):
    other = elsewhere(tmp_path)
    code, said = run_injected(other, inject, "restore", house.backup, "--with-odds")
    assert code == 1 and "croupier restore: " in said, said
    assert [name for name in files(other.directory) if not (other.directory / name).is_dir()] == []
    other.run("restore", house.backup, "--with-odds")


# ---- servers ---------------------------------------------------------------------------------------------------------

@pytest.mark.only("postgresql")
@pytest.mark.depends_on("platform")
def test_a_database_in_postgresql_is_left_to_its_own_tools(stored, tmp_path):
    for command in ("backup", "restore"):
        assert "pg_dump" in stored.run(command, tmp_path / "backup", status=1).errors
    assert files(tmp_path) == []


@pytest.mark.only("redis", "sqlite")
def test_odds_in_redis_are_not_in_a_backup(stored, tmp_path):
    done = stored.run("backup", tmp_path / "backup")
    assert "not in the backup" in done.errors and files(tmp_path / "backup") == ["manifest.json", "platform.db"]
    assert "--with-odds" in stored.run("restore", tmp_path / "backup", "--with-odds", status=1).errors
