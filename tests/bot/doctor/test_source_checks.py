"""What the sources of corpora need of this machine."""

from bot.doctor.checks.server_checks import _check_git_version


def test_git_is_looked_for(tmp_path):
    """It is there, it is too old, or it is missing; each with what to do."""
    for version, level, told in (("2.47.1", "ok", "reads handbook"), ("2.20.1", "fail", "too old")):
        program = tmp_path / version
        program.write_text(f"#!/bin/sh\necho git version {version}\n")
        program.chmod(0o700)

        found = _check_git_version(str(program), "handbook")

        assert found.level == level
        assert told in found.what
        assert bool(found.hint) is (level == "fail")
    missing = _check_git_version(None, "handbook")
    assert (missing.level, "not installed" in missing.what, bool(missing.hint)) == ("fail", True, True)
