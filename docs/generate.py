"""`make docs`: write anew the pages that are made from the code."""

from __future__ import annotations

from docs import generate_architecture, generate_filters

if __name__ == "__main__":
    generate_filters.main()
    generate_architecture.main()
