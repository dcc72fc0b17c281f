"""Start the servers that a team shares, PostgreSQL and Chroma, empty; the end of the tests removes them."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

BINARIES = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), Path("/nowhere"))
USER = "postgres"  # PostgreSQL does not run as root
VARIABLE = "TEAM_SERVERS"
START_SECONDS = 30
_EMPTY = "empty"


def find_missing() -> str:
    """Return why the servers of a team cannot be started here; empty if they can."""
    if os.environ.get("CI"):
        return "databases are not started where CI is set"
    if not (BINARIES / "initdb").exists():
        return "PostgreSQL is not installed: apt-get install postgresql"
    if not find_spec("psycopg"):
        return "psycopg is not installed"
    return ""


@dataclass(frozen=True)
class TeamServers:
    """A running PostgreSQL and Chroma. Each home has a separate database on both, named after its folder."""

    folder: str
    port: int

    @staticmethod
    def current() -> "TeamServers | None":
        """Return the servers that tests and the processes that they start use; None without servers."""
        folder, _, port = os.environ.get(VARIABLE, "").partition(":")
        return TeamServers(folder, int(port)) if folder else None

    @property
    def chroma_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def database_url(self, name: str = "postgres") -> str:
        return f"postgresql://footnote@/{name}?host={self.folder}"

    def find_database(self, home: Path) -> str:
        """Return the URL of a home's database, and create it if it is missing."""
        name = name_database(home)
        if not self.run_sql(f"SELECT 1 FROM pg_database WHERE datname = '{name}'"):
            self.run_sql(f"CREATE DATABASE {name} TEMPLATE {_EMPTY}")
        return self.database_url(name)

    def make_chroma_database(self, name: str) -> None:
        address = f"{self.chroma_url}/api/v2/tenants/default_tenant/databases"
        try:
            urlopen(Request(address, json.dumps({"name": name}).encode(), {"Content-Type": "application/json"})).close()
        except HTTPError as error:
            with error:
                if error.code != HTTPStatus.CONFLICT:
                    raise

    def run_sql(self, statement: str, database: str = "postgres") -> list:
        import psycopg

        with psycopg.connect(self.database_url(database), autocommit=True) as connection:
            done = connection.execute(statement)
            return done.fetchall() if done.description else []

    def drop_databases(self) -> None:
        for (name,) in self.run_sql("SELECT datname FROM pg_database WHERE datname LIKE 'home\\_%'"):
            self.run_sql(f"DROP DATABASE {name} WITH (FORCE)")


def name_database(home: Path) -> str:
    return f"home_{sha256(str(home.resolve()).encode()).hexdigest()[:16]}"


@contextmanager
def start_team_servers() -> Iterator[TeamServers]:
    from storage.database.engine import open_database

    folder, port = Path(tempfile.mkdtemp(prefix="team-")), find_free_port()
    data, log = folder / "data", folder / "log"
    if os.geteuid() == 0:
        shutil.chown(folder, USER, USER)
    initdb = [str(BINARIES / "initdb"), "-D", str(data), "-A", "trust", "-U", "footnote", "--no-sync", "-E", "UTF8"]
    postgres = [str(BINARIES / "postgres"), "-D", str(data), "-F", "-c", "listen_addresses=", "-k", str(folder)]
    chroma = [sys.executable, "-c", "from chromadb.cli.cli import app; app()", "run"]
    chroma += ["--path", str(folder / "chroma"), "--host", "127.0.0.1", "--port", str(port)]
    started: list[subprocess.Popen] = []
    try:
        with log.open("wb") as out:
            subprocess.run(_unprivileged([*initdb, "--locale", "C.UTF-8"]), stdout=out, stderr=out, check=True)
            commands = (_unprivileged(postgres), chroma)
            started += [subprocess.Popen(command, stdout=out, stderr=out) for command in commands]
        servers = TeamServers(str(folder), port)
        _wait_until_ready(servers)
        servers.run_sql(f"CREATE DATABASE {_EMPTY}")
        with open_database(servers.database_url(_EMPTY), home=folder):
            pass  # this creates the tables, which are then copied
        yield servers
    finally:
        for process, end in zip(started, (signal.SIGQUIT, signal.SIGKILL), strict=False):
            process.send_signal(end)
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _unprivileged(command: list[str]) -> list[str]:
    return (
        ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *command] if os.geteuid() == 0 else command
    )


def find_free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _wait_until_ready(servers: TeamServers) -> None:
    import psycopg

    end = time.monotonic() + START_SECONDS
    while True:
        try:
            servers.run_sql("SELECT 1")
            urlopen(f"{servers.chroma_url}/api/v2/heartbeat", timeout=5).close()
        except (psycopg.OperationalError, URLError):
            if time.monotonic() > end:
                raise
            time.sleep(0.05)  # until a server answers
        else:
            return
