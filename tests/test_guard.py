"""The guard that keeps tests off the network."""

import socket

import pytest

from tests.conftest import NetworkForbidden


@pytest.mark.parametrize("host", ["192.0.2.1", "example.com", "10.0.0.1", "2001:db8::1"])
def test_connection_to_another_machine_fails(host):
    with pytest.raises(NetworkForbidden):
        socket.create_connection((host, 80), timeout=0.1)


def test_local_connection_is_allowed():
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), timeout=5) as client,
    ):
        assert client.getpeername() == server.getsockname()
