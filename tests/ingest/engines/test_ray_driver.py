"""The parts of Ray's driver that need no Ray: a worker's results, explanations of faults, and the environment."""

import pickle
import re
from importlib.util import find_spec

import pytest

from ingest.refresh.ray_driver import compute_block, explain_refusal
from ingest.refresh.ray_engine import EngineUnavailable, RayEngine, build_environment, hash_code
from tests.ingest.engines import jobs

GONE = b"cnowhere\nwork\n."  # a pickled function of a missing module


OURS = hash_code()


def compute(work, number=1, code=OURS):
    answer = compute_block({"block": pickle.dumps(number)}, work=work, code=code)
    return answer["kind"], pickle.loads(answer["content"])


def test_worker_returns_a_result_or_an_error():
    assert compute(pickle.dumps(jobs.double)) == ("result", 2)
    kind, error = compute(pickle.dumps(jobs.fail))
    assert kind == "error"
    assert isinstance(error, LookupError)
    kind, error = compute(pickle.dumps(jobs.fail), 2)
    assert kind == "error"
    assert "Unpicklable" in str(error)


@pytest.mark.parametrize(
    ("work", "code", "message"),
    [
        (pickle.dumps(jobs.double), "3.9/other", r"differs: a worker on .* runs .*, this process 3\.9/other"),
        (GONE, OURS, "cannot run Footnote: No module named 'nowhere'"),
    ],
)
def test_worker_of_another_version_is_reported(work, code, message):
    kind, (fault, hint) = compute(work, code=code)

    assert kind == "fault"
    assert re.search(message, fault)
    assert "every machine" in hint


@pytest.mark.parametrize(
    ("error", "address", "message", "hint"),
    [
        (RuntimeError("Version mismatch: The cluster was started with:\n Ray: 2.9"), "h:1", "Ray: 2.9", "same version"),
        (ConnectionRefusedError(111, "Connection refused"), "h:1", "at h:1 cannot be reached", "joined the cluster"),
        (ConnectionError("no", RuntimeError("InvalidAuthToken: 1")), "h:1", "token is missing or wrong", "AUTH_MODE"),
        (RuntimeError("The node is out of disk\nat length"), "", "cannot be started here: .*disk.$", "this machine"),
    ],
)
def test_missing_cluster_is_explained_in_one_line(error, address, message, hint):
    fault, advice = explain_refusal(error, address)

    assert re.search(message, fault)
    assert hint in advice
    assert "\n" not in fault


def test_driver_and_workers_get_no_secrets():
    around = {
        "PATH": "/bin",
        "OPENAI_API_KEY": "s1",
        "FOOTNOTE_DATABASE": "s2",
        "RAY_AUTH_TOKEN": "r",
        "RAY_ADDRESS": "h",
    }

    here = build_environment(around, "")
    assert {"s1", "s2", "r", "h"}.isdisjoint(here.values())
    assert build_environment(around, "h:1").items() - here.items() == {("RAY_AUTH_TOKEN", "r")}


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed")
def test_missing_ray_is_reported():
    with pytest.raises(EngineUnavailable, match="not installed") as raised:
        RayEngine().check()
    assert "make ray" in raised.value.hint
    with pytest.raises(EngineUnavailable, match="not installed"):
        list(RayEngine().map(jobs.double, [1]))
