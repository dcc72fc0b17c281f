"""A Ray cluster of two nodes for tests: `python -m tests.ingest.engines.ray_cluster`.

It prints its address, kills the second node at the first line of input, and ends with its input.
"""

import sys


def main() -> None:
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": 100 << 20, "node_ip_address": "127.0.0.1"}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    other = cluster.add_node(**node)
    print(cluster.address, flush=True)  # noqa: T201 - it is what the test reads
    if sys.stdin.readline():
        cluster.remove_node(other, allow_graceful=False)
        sys.stdin.readline()
    cluster.shutdown()


if __name__ == "__main__":
    main()
