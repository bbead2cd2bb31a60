"""`python -m experiments [--full] [paper ...]`: regenerate the papers' tables and figures under experiments/results/."""

from __future__ import annotations

import argparse
import time
from importlib import import_module

PAPERS = ("ranked", "range_topk", "motree", "topkw", "rttree")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("papers", nargs="*", metavar="paper", help=f"any of {', '.join(PAPERS)}; all by default")
    parser.add_argument("--full", action="store_true", help="the papers' own sizes (hours) instead of minutes")
    arguments = parser.parse_args()
    for paper in arguments.papers:
        if paper not in PAPERS:
            parser.error(f"paper {paper!r} is none of {', '.join(PAPERS)}")
    chosen = arguments.papers or PAPERS
    for number, paper in enumerate(chosen, 1):
        print(f"[{number}/{len(chosen)}] {paper}", flush=True)
        start = time.perf_counter()
        import_module(f"experiments.{paper}").main(arguments.full)
        print(f"[{number}/{len(chosen)}] {paper}: done in {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
