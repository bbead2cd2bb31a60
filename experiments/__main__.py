"""`python -m experiments [--full] [paper ...]`: regenerate the papers' tables and figures under experiments/results/."""

from __future__ import annotations

import argparse
import shutil
import time
from importlib import import_module

from experiments.report import ROOT, Enough, stop_after

PAPERS = ("ranked", "range_topk", "motree", "topkw", "rttree")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("papers", nargs="*", metavar="paper", help=f"any of {', '.join(PAPERS)}; all by default")
    parser.add_argument("--full", action="store_true", help="the papers' own sizes (hours); a run that was stopped goes on")
    parser.add_argument("--minutes", type=float, help="begin no further piece of a full run after so many minutes")
    parser.add_argument("--again", action="store_true", help="forget what full runs have stored of these papers")
    arguments = parser.parse_args()
    for paper in arguments.papers:
        if paper not in PAPERS:
            parser.error(f"paper {paper!r} is none of {', '.join(PAPERS)}")
    chosen = arguments.papers or PAPERS
    stop_after(arguments.minutes)
    for number, paper in enumerate(chosen, 1):
        if arguments.again:
            shutil.rmtree(ROOT / "results" / f"{paper}-full" / "pieces", ignore_errors=True)
        print(f"[{number}/{len(chosen)}] {paper}", flush=True)
        start = time.perf_counter()
        try:
            import_module(f"experiments.{paper}").main(arguments.full)
        except Enough as stopped:
            print(f"[{number}/{len(chosen)}] {paper}: stopped before {stopped}; the same command goes on there", flush=True)
            return
        print(f"[{number}/{len(chosen)}] {paper}: done in {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
