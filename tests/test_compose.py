"""The container files: their services, volumes, secrets and settings, and the version of the Chroma server."""

import asyncio
import json
import re
import shutil
import subprocess
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml

from bot.settings.settings_reader import load_settings

ROOT = Path(__file__).parents[1]
ALONE, TEAM = ROOT / "compose.yaml", ROOT / "compose.team.yaml"


def read_services(file: Path) -> dict[str, dict]:
    """Return a file's services merged with those they extend: mappings by key, volumes by mount point."""
    services = {}
    for name, own in yaml.safe_load(file.read_text())["services"].items():
        base = read_services(ROOT / own["extends"]["file"])[own["extends"]["service"]] if "extends" in own else {}
        mounts = [*base.get("volumes", ()), *own.get("volumes", ())]
        volumes = {mount.rpartition(":/")[2]: mount for mount in mounts}
        services[name] = base | own | {"volumes": list(volumes.values())}
    return services


def read_healthcheck() -> list[str]:
    return json.loads(re.search(r"^HEALTHCHECK .* CMD (\[.*\])$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)[1])


def test_serving_services_have_no_profile():
    assert set(read_services(ALONE)) == {"footnote"}
    assert set(read_services(TEAM)) == {"bot-1", "bot-2", "postgres", "chroma"}
    assert not any("profiles" in service or "command" in service for service in read_services(TEAM).values())


@pytest.mark.parametrize("file", [ALONE, TEAM], ids=lambda file: file.name)
def test_mounts_and_dependencies_are_declared(file):
    declared, services = yaml.safe_load(file.read_text()), read_services(file).values()
    mounts = [re.sub(r"\$\{\w+:-(.*?)\}", r"\1", mount) for service in services for mount in service["volumes"]]

    assert {mount.partition(":")[0] for mount in mounts if not mount.startswith("./")} == set(declared["volumes"])
    assert {secret for service in services for secret in service.get("secrets", ())} == set(declared.get("secrets", ()))
    assert {name for service in services for name in service.get("depends_on", ())} <= set(declared["services"])
    assert all(service["read_only"] and service["security_opt"] and service["restart"] for service in services)


def test_stored_data_is_in_a_writable_volume():
    dockerfile = (ROOT / "Dockerfile").read_text()
    mounted = {mount.rpartition(":/")[2] for mount in read_services(ALONE)["footnote"]["volumes"]}

    assert mounted == {"var/lib/footnote", "var/lib/footnote-key", "etc/footnote", "documents:ro"}
    assert "WORKDIR /etc/footnote\n" in dockerfile
    assert re.search(r"install --directory --owner=footnote .* /etc/footnote /var/lib/footnote-key\n", dockerfile)


@pytest.mark.parametrize("service", ["bot-1", "bot-2"])
def test_every_variable_of_a_bot_is_a_setting(service, tmp_path, monkeypatch):
    values = {"DATABASE": "postgresql://footnote:x@postgres/footnote", "SLACK_APP": "xapp-1-a", "SLACK_BOT": "xoxb-1"}
    for name, value in read_services(TEAM)[service]["environment"].items():
        given = next((text for part, text in values.items() if part in name), value)
        if name.endswith("_FILE"):
            (tmp_path / name).write_text(given)
            given = str(tmp_path / name)
        monkeypatch.setenv(name, given)

    settings = load_settings()

    assert settings.database
    assert settings.chroma.url
    assert settings.slack.bot_token.get_secret_value() == "xoxb-1"


def test_chroma_server_has_the_clients_version():
    lock = (ROOT / "requirements" / "run.lock").read_text()
    assert f"\nchromadb=={read_services(TEAM)['chroma']['image'].partition(':')[2]} " in lock


@asynccontextmanager
async def answer_with(status: str):
    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status if asked.startswith(b'GET /healthz ') else '404 Not Found'}\r\n\r\n".encode())
        writer.close()

    async with await asyncio.start_server(reply, "127.0.0.1") as server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
@pytest.mark.parametrize(("status", "alive"), [("200 OK", True), ("503 Service Unavailable", False)])
async def test_image_health_follows_the_server(status, alive):
    async with answer_with(status) as port:
        assert (await run_healthcheck(port) == 0) is alive
    assert await run_healthcheck(port) != 0


async def run_healthcheck(port: int) -> int:
    process = await asyncio.create_subprocess_exec(
        *read_healthcheck(), env={"FOOTNOTE_HTTP__PORT": str(port)}, stderr=subprocess.DEVNULL
    )
    return await process.wait()


def has_compose() -> bool:
    if not shutil.which("docker"):
        return False
    return subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not has_compose(), reason="docker compose is not installed")
@pytest.mark.parametrize("file", [ALONE, TEAM], ids=lambda file: file.name)
def test_compose_accepts_the_file(file):
    command = ["docker", "compose", "--file", str(file), "config", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
