"""The greedy forwarding of [range-topk, section V], simulated over the product's zones: the comparator of gateways on Kafka."""
