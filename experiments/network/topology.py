"""A generated internet: a power-law graph of routers, brokers at random ones, and the IP hops between brokers.

The paper takes its 20,000-node network from INET; here it is a Barabasi-Albert graph with two links a new node, of the same kind
(degrees follow a power law) and of the same size.
"""

from __future__ import annotations

import networkx
import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra


def hops_between_brokers(nodes: int, brokers: int, seed: int) -> NDArray[np.int16]:
    """IP hops between brokers (brokers x brokers)."""
    graph = networkx.to_scipy_sparse_array(networkx.barabasi_albert_graph(nodes, 2, seed=seed), format="csr")
    places = np.random.default_rng(seed).choice(nodes, brokers, replace=False)
    hops = [dijkstra(graph, unweighted=True, indices=int(place))[places] for place in places]
    return np.array(hops).astype(np.int16)
