"""Addresses of repositories: validation, redaction, and addresses of files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.sources.git.git_program import (
    GitRemote,
    build_file_url,
    choose_url_template,
    find_address_fault,
    is_branch,
    may_send_token,
)


@pytest.mark.parametrize(
    ("address", "protocol"),
    [
        ("https://github.com/example/handbook.git", "https"),
        ("http://git.example.com/x", "http"),
        ("ssh://git@git.example.com:2222/x/y", "ssh"),
        ("git@github.com:example/handbook.git", "ssh"),
        ("host.example:x/y", "ssh"),
    ],
)
def test_valid_addresses_are_accepted(address, protocol):
    assert not find_address_fault(address)
    assert GitRemote(address).protocol == protocol


@pytest.mark.parametrize(
    "address",
    [
        "",
        "--upload-pack=touch /tmp/x",
        "ext::sh -c touch",
        "file:///etc",
        "/etc",
        "git://example.com/x",
        "https://user:password@example.com/x",
        "https://token@example.com/x",
        "https://-oProxyCommand=touch/x",
        "ssh://-oProxyCommand=touch/x",
        "-oProxyCommand=touch:x",
        "git@-oProxyCommand=touch:x",
        "https:///x",
        "https://example.com/x?token=1",
        "https://example.com/a b",
        "host:x\ny",
        "transport::address",
    ],
)
def test_unsafe_addresses_are_rejected(address):
    assert find_address_fault(address)


@given(st.text())
def test_accepted_addresses_are_never_options_or_programs(address):
    if not find_address_fault(address):
        assert not address.startswith("-")
        assert "::" not in address.split("/")[0]
        assert GitRemote(address).protocol in {"https", "http", "ssh"}


@pytest.mark.parametrize("name", ["main", "drafts/2", "release-1.0", "ümlaut"])
def test_branch_names_are_accepted(name):
    assert is_branch(name)


@pytest.mark.parametrize("name", ["-x", "", "a..b", "a b", "a:b", "a^", "a*", "a.lock", "/a", "a/", "a\n", "x@{1}"])
def test_invalid_branch_names_are_rejected(name):
    assert not is_branch(name)


def test_tokens_are_sent_over_safe_connections_only():
    assert may_send_token("https://example.com/x")
    assert may_send_token("http://127.0.0.1:3000/x")
    assert not may_send_token("http://example.com/x")
    assert not may_send_token("git@example.com:x/y")
    assert not may_send_token("")


def test_secrets_are_redacted():
    remote = GitRemote("https://me:pass@example.com/x?y=z", token="s3cret")

    assert remote.shown == "https://example.com/x"
    assert remote.redact("fatal: s3cret at https://me:pass@example.com/x") == "fatal: … at https://example.com/x"
    assert "s3cret" not in repr(remote)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://github.com/o/r.git", "https://github.com/o/r/blob/main/a%20b/c.md"),
        ("git@gitlab.example.com:g/s/r.git", "https://gitlab.example.com/g/s/r/-/blob/main/a%20b/c.md"),
        ("https://codeberg.org/o/r/", "https://codeberg.org/o/r/src/branch/main/a%20b/c.md"),
        ("ssh://git@bitbucket.org/o/r", "https://bitbucket.org/o/r/src/main/a%20b/c.md"),
        ("https://git.example.com/o/r", ""),
        ("/srv/repositories/r", ""),
    ],
)
def test_known_hosts_have_file_addresses(address, expected):
    form = choose_url_template("", address)

    assert build_file_url(form, path="a b/c.md", branch="main", commit="") == expected


def test_configured_file_url_template_is_filled_with_escaped_values():
    template = choose_url_template("https://x.org/{branch}/{commit}/{path}", "")

    url = build_file_url(template, path="docs/{branch}.md", branch="b#1", commit="c" * 40)

    assert url == f"https://x.org/b%231/{'c' * 40}/docs/%7Bbranch%7D.md"
