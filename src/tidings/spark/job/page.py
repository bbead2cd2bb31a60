"""The report as one HTML page that needs nothing else: who heard what and why, where, how fast, and by what it was made."""

from __future__ import annotations

import html
from collections.abc import Mapping
from pathlib import Path

from tidings.spark.job.drawings import bars, over_time, ranking
from tidings.spark.job.land import Land
from tidings.spark.job.map_drawing import close_up, overview
from tidings.spark.job.report import ALL, Report
from tidings.spark.job.stories import ListStory, Told, asks

STYLE = """
:root { color-scheme: light dark;
  --ink: #1c2430; --soft: #5b6672; --line: #d8dde3; --bar: #2f6f8f; --mark: #b8481c; --ground: #fbfaf7; --card: #ffffff;
  --coast: #7fa3b5; --border: #8a8f98; }
@media (prefers-color-scheme: dark) { :root {
  --ink: #e8e6e1; --soft: #a3acb5; --line: #343b44; --bar: #6db3d3; --mark: #f0925f; --ground: #14181d; --card: #1c2228;
  --coast: #4d7d94; --border: #7b828c; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1rem; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .2rem; } h3 { font-size: 1rem; margin: 0; }
p { margin: .2rem 0 .8rem; max-width: 44rem; } .soft, footer { color: var(--soft); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(17rem, 100%), 1fr)); gap: .8rem; margin: .8rem 0; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .7rem .9rem; }
.card { min-width: 0; overflow-wrap: anywhere; }
.card ul { margin: .3rem 0 0; padding-left: 1.1rem; } .why { color: var(--mark); font-weight: 600; }
table { border-collapse: collapse; width: 100%; } td { padding: .15rem 0; border-bottom: 1px solid var(--line); }
tr:last-child td { border-bottom: 0; }
td + td { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; padding-left: .8rem; }
svg { width: 100%; max-width: 44rem; height: auto; display: block; } text { font: 12px system-ui, sans-serif; fill: var(--soft); }
.strong { fill: var(--ink); font-weight: 600; paint-order: stroke; stroke: var(--ground); stroke-width: 3px; }
.axis { stroke: var(--line); } .dashed { stroke-dasharray: 2 4; } .bar { fill: var(--bar); } .pale { opacity: .4; }
.span { fill: var(--bar); opacity: .75; } .told { stroke: var(--mark); stroke-width: 2; }
.ground { fill: var(--card); stroke: var(--line); } .coast { fill: none; stroke: var(--coast); stroke-width: 1; }
.border { fill: none; stroke: var(--border); stroke-width: 1.2; stroke-dasharray: 5 2; }
.box { fill: var(--bar); fill-opacity: .06; stroke: var(--bar); stroke-opacity: .35; stroke-width: .7; }
.chosen { fill: var(--bar); fill-opacity: .15; stroke: var(--bar); stroke-width: 2; }
.ring { fill: none; stroke: var(--mark); stroke-width: 3; }
.event { fill: var(--soft); opacity: .45; } .heard { fill: var(--mark); }
footer { border-top: 1px solid var(--line); margin-top: 2.5rem; padding-top: .8rem; font-size: .9rem; overflow-wrap: anywhere; }
"""


def write_page(path: Path, report: Report, land: Land | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(report, land))


def page(report: Report, land: Land | None = None) -> str:
    title = html.escape(f"{report.topic}: who heard what, and why")
    body = "\n".join(
        [f"<h1>{title}</h1>", summary(report), who(report), list_over_time(report), where(report, land), speed(report)]
    )
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>'
    return f'<!doctype html><html lang="en"><head>{head}<style>{STYLE}</style></head><body>{body}{footer(report)}</body></html>\n'


def summary(report: Report) -> str:
    total = report.progress.total
    people = "" if report.view is None else f"{len(report.view):,} subscriptions waited. "
    each = f", {total.matches / total.events:.1f} each" if total.events and total.matches else ""
    if report.kind != "notify":
        return f"<p>{people}{total.events:,} rows came in; {total.notifications:,} rows went out.</p>"
    return (
        f"<p>{people}{total.events:,} events came in and had {total.matches:,} matches{each}; {total.notifications:,} rows went "
        "out, the rest being what a subscription's own ranking held back.</p>"
    )


def who(report: Report) -> str:
    stories = report.stories
    if stories.silent or not stories.told:
        return section("Who heard what, and why", html.escape(stories.silent or "Nobody heard of anything."), "")
    most = ranking(stories.top, "subscriptions by rows at the sink")
    told = "".join(map(card, stories.told))
    return section(
        "Who heard what, and why", "Some of what was told, with what the subscription asks for and what the event had.", cards(told)
    ) + section("Told most", "Subscriptions with the most rows at the sink.", most)


def card(told: Told) -> str:
    rank = "" if told.rank is None else f", place {told.rank}"
    at = "" if told.at is None else f" at {told.at:%H:%M:%S}"
    held = "".join(f"<li>{html.escape(one)}</li>" for one in told.held)
    head = f"<h3>{html.escape(told.subscription)} heard of {html.escape(told.event)}</h3>"
    why = f'<span class="why">{html.escape(told.why)}</span>{rank}{at}; wants {html.escape(told.asks)}'
    return f'<div class="card">{head}<div>{why}</div><ul>{held}</ul></div>'


def list_over_time(report: Report) -> str:
    story = report.stories.list
    if story is None or not story.spans:
        return ""
    drawing = over_time(story.spans, f"the list of {story.subscription.id} over time")
    return section("A list over time", said_of(story), drawing)


def said_of(story: ListStory) -> str:
    wants = html.escape(asks(story.subscription))
    return (
        f"<b>{html.escape(story.subscription.id)}</b> wants {wants}, and was told {story.told} times. Each bar is an event in its "
        "list, better ones higher; the mark at its left end is when it was told. A bar ends when better ones come, the window "
        "closes or it expires."
    )


def where(report: Report, land: Land | None) -> str:
    view, places, story = report.view, report.stories.places, report.stories.list
    if view is None or places is None or not len(places):
        return ""
    made = section("Where", "Events as points, the places of some subscriptions as boxes.", overview(view, places, story, land))
    if story is None or story.box is None:
        return made
    what = f"The place of <b>{html.escape(story.subscription.id)}</b>: pale points came there, those in colour it heard of."
    return made + section("One subscription", what, close_up(view, story, places, land))


def speed(report: Report) -> str:
    batches = report.progress.all
    figures = {
        "In all": report.counts(),
        "Once warm (the later half of the micro-batches)": report.warm(),
        "Warm-up": report.warm_up(),
    }
    tables = cards("".join(f'<div class="card"><h3>{title}</h3>{table(rows)}</div>' for title, rows in figures.items()))
    warm_from = len(batches) - len(report.progress.warm)
    drawn = bars([batch.rate(batch.events) for batch in batches], "events a second by micro-batch", warm_from)
    took = bars([batch.seconds for batch in batches], "seconds by micro-batch", warm_from)
    return (
        section("How fast", f"The whole run took {report.times[ALL]:.1f} s.", tables)
        + section("Throughput", "Events a second in each micro-batch; the paler half is the warm-up.", drawn)
        + section("Latency", "Seconds that each micro-batch took.", took)
    )


def table(figures: Mapping[str, str]) -> str:
    return "<table>" + "".join(f"<tr><td>{html.escape(name)}</td><td>{one}</td></tr>" for name, one in figures.items()) + "</table>"


def cards(inside: str) -> str:
    return f'<div class="cards">{inside}</div>'


def section(title: str, what: str, drawing: str) -> str:
    return f'<h2>{title}</h2><p class="soft">{what}</p>{drawing}'


def footer(report: Report) -> str:
    return "<footer>" + "<br>".join(f"{name} {html.escape(said)}" for name, said in report.made.items()) + "</footer>"
