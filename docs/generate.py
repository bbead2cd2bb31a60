"""`make docs`: write anew the pages and drawings that are made from the code and from stored results."""

from __future__ import annotations

from docs import generate_architecture, generate_evidence, generate_filters, generate_navigation, generate_scale, recording
from docs.figures import drawn

if __name__ == "__main__":
    generate_filters.main()
    generate_architecture.main()
    generate_navigation.main()
    drawn.main()
    recording.main()
    generate_evidence.main()
    generate_scale.main()
