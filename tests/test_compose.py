"""`compose.yaml` names what there is: services, volumes, secrets, settings, and the Chroma that the client fits."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from bot.settings.settings_reader import load_settings

ROOT = Path(__file__).parents[1]
FILE = ROOT / "compose.yaml"


@pytest.fixture
def composed() -> dict:
    return yaml.safe_load(FILE.read_text())


def test_each_profile_has_its_services(composed):
    """And none starts where nothing was asked for."""
    profiles: dict[str, set[str]] = {}
    for name, service in composed["services"].items():
        for profile in service["profiles"]:
            profiles.setdefault(profile, set()).add(name)

    assert profiles == {
        "footnote": {"footnote"},
        "bot": {"bot"},
        "team": {"bot-1", "bot-2", "postgres", "chroma"},
    }


def test_what_services_mount_and_wait_for_is_declared(composed):
    services = composed["services"].values()
    volumes = {one.partition(":")[0] for service in services for one in service.get("volumes", ())}
    named = {one for one in volumes if re.fullmatch(r"[a-z0-9-]+", one)}

    assert named == set(composed["volumes"])
    assert {one for service in services for one in service.get("secrets", ())} == set(composed["secrets"])
    assert {one for service in services for one in service.get("depends_on", ())} <= set(composed["services"])
    assert all(service["read_only"] and service["security_opt"] for service in services)
    assert all("healthcheck" in service for service in services if service.get("restart"))


@pytest.mark.parametrize("service", ["bot", "bot-1", "bot-2"])
def test_every_variable_of_a_bot_is_a_setting(composed, service, tmp_path, monkeypatch):
    """Also by its file; and the settings that they make are whole."""
    values = {"DATABASE": "postgresql://footnote:x@postgres/footnote", "SLACK": "xapp-1-a", "DISCORD": "t"}
    for name, value in composed["services"][service]["environment"].items():
        given = next((text for part, text in values.items() if part in name), value)
        if name.endswith("_FILE"):
            given = str(tmp_path / name)
            Path(given).write_text(next(text for part, text in values.items() if part in name))
        monkeypatch.setenv(name, given)

    settings = load_settings()

    assert bool(settings.database) == bool(settings.chroma.url) == (service != "bot")
    assert settings.slack.bot_token.get_secret_value() == "xapp-1-a"


def test_the_chroma_server_is_of_the_client_s_version(composed):
    lock = (ROOT / "requirements" / "run.lock").read_text()
    assert f"\nchromadb=={composed['services']['chroma']['image'].partition(':')[2]} " in lock


def has_compose() -> bool:
    """Return whether docker is here, and its plugin for compose."""
    if not shutil.which("docker"):
        return False
    return subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not has_compose(), reason="docker compose is not installed")
def test_compose_itself_takes_it():
    command = ["docker", "compose", "--file", str(FILE), "--profile", "team", "config", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
