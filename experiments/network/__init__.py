"""The content-driven network of [range-topk, section V], simulated and over sockets: comparators of the papers' experiments."""
