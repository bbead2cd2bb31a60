"""The `tidings` command."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from tidings import __version__
from tidings.commands import events, operating, sinks, subscriptions, topics
from tidings.errors import TidingsError

ABOUT = "A ranked publish/subscribe engine: topics in folders and at services, and the pipeline on Spark."
app = typer.Typer(help=ABOUT, no_args_is_help=True)
console = Console()

JobFile = Annotated[Path, typer.Argument(help="The job, a TOML file; docs/spark.md describes it.")]
Master = Annotated[str, typer.Option(help="Where Spark runs.")]
Changes = Annotated[list[str] | None, typer.Option("--set", help="table.key=value over the file, as run.trigger=available-now.")]
Packages = Annotated[str | None, typer.Option(help="Maven coordinates of connectors, as Spark's own --packages.")]


def tell_version(wanted: bool) -> None:
    if wanted:
        console.print(f"tidings {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def tidings(
    version: Annotated[
        bool, typer.Option("--version", callback=tell_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    """A ranked publish/subscribe engine: topics in folders and at services, and the pipeline on Spark."""


def need_spark() -> None:
    if importlib.util.find_spec("pyspark") is None:
        raise TidingsError("this command needs Spark, which is not installed: pip install 'tidings[spark]'")


@app.command()
def run(
    job: JobFile,
    master: Master = "local[*]",
    set: Changes = None,
    dry_run: Annotated[bool, typer.Option(help="Show columns and ten rows of a sample with their reasons; write nothing.")] = False,
    packages: Packages = None,
) -> None:
    """Run a job: events in, notifications out."""
    need_spark()
    from tidings.spark.job.dry_run import dry_run as run_dry
    from tidings.spark.job.job_reading import load_job
    from tidings.spark.job.runner import run as run_job

    (run_dry if dry_run else run_job)(load_job(job, set or (), master), master, console, packages)


@app.command()
def check(
    job: Annotated[Path | None, typer.Argument(help="The job, a TOML file.")] = None,
    set: Changes = None,
    schema: Annotated[bool, typer.Option(help="Print the JSON Schema of job files instead, for editors.")] = False,
) -> None:
    """Say all that is wrong with a job file, without starting Spark."""
    need_spark()
    from tidings.spark.job.job_reading import json_schema, load_job

    if schema:
        typer.echo(json.dumps(json_schema(), indent=2))
    elif job is None:
        raise TidingsError("check needs a job file, or --schema")
    else:
        load_job(job, set or ())
        console.print(f"{job} can be run", markup=False, highlight=False, soft_wrap=True)


@app.command()
def submit(
    job: JobFile,
    master: Annotated[str, typer.Option(help="The cluster, as spark://host:7077.")],
    set: Changes = None,
    packages: Packages = None,
    folder: Annotated[Path, typer.Option(help="Where the packed environment is kept.")] = Path("build"),
    kernels: Annotated[bool, typer.Option(help="Send compiled kernels along; the first time they are compiled here.")] = True,
) -> None:
    """Run a job on a cluster that has Spark and Python, but not tidings: the environment is packed and sent along."""
    need_spark()
    from tidings.spark.job.submit import submit as submit_job

    raise SystemExit(submit_job(job, master, set or (), packages, folder, kernels))


def need_server() -> None:
    if importlib.util.find_spec("fastapi") is None:
        raise TidingsError("this command needs the server's packages, which are not installed: pip install 'tidings[server]'")


@app.command()
def serve(
    folder: Annotated[Path | None, typer.Argument(help="Where the topics are; made if it is not there.")] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes any that is free.")] = 8080,
    open: Annotated[bool, typer.Option("--open", help="Let everybody in without a key; on loopback only.")] = False,
    body: Annotated[int, typer.Option(help="Most bytes of a request.")] = 64 * 2**20,
    backlog: Annotated[int, typer.Option(help="Notifications that a topic keeps for those who are behind.")] = 1_000_000,
    allow: Annotated[list[str] | None, typer.Option(help="A host in a private range that sinks may reach.")] = None,
    jwt_issuer: Annotated[str | None, typer.Option(help="Identity provider whose tokens are accepted.")] = None,
    jwt_audience: Annotated[str | None, typer.Option(help="The audience that its tokens must name.")] = None,
    jwt_jwks: Annotated[str | None, typer.Option(help="Its keys: a file or a URL.")] = None,
    readers: Annotated[int, typer.Option(help="Processes that answer questions and streams beside the writer.", min=0)] = 0,
    log: Annotated[str | None, typer.Option(help="debug, info, warning or error; info, or warning with --demo.")] = None,
    tiles: Annotated[str | None, typer.Option(help="Tiles for the console's map, as https://.../{z}/{x}/{y}.png.")] = None,
    brokers: Annotated[str | None, typer.Option(help="Kafka, as host:9092, over which gateways are told.")] = None,
    paint: Annotated[list[str] | None, typer.Option(help="A family that gateways serve, as flats=price:-stars:20.")] = None,
    zones: Annotated[int, typer.Option(help="Zones of each family's plane: partitions, and so at most gateways.", min=1)] = 8,
    sparse: Annotated[bool, typer.Option("--sparse", help="Paint only where gateways say that there are watchers.")] = False,
    demo: Annotated[bool, typer.Option("--demo", help="Topics with events that keep coming, open, on loopback.")] = False,
) -> None:
    """Serve the topics of a folder over HTTP, with a console at /."""
    need_server()
    if demo:
        from tidings.commands.demonstrating import demonstrate

        demonstrate(folder, host, port, log or "warning", tiles)
        return
    if folder is None:
        raise TidingsError("serve needs a folder of topics; or --demo, which has its own")
    from tidings.serve.access.tokens import Provider
    from tidings.serve.run.server import serve as serve_folder
    from tidings.serve.settings import Settings

    given = (jwt_issuer, jwt_audience, jwt_jwks)
    if any(given) and not all(given):
        raise TidingsError("a provider of tokens has --jwt-issuer, --jwt-audience and --jwt-jwks: all three are needed")
    provider = Provider(jwt_issuer, jwt_audience, jwt_jwks) if jwt_issuer and jwt_audience and jwt_jwks else None
    if (brokers is None) == bool(paint):
        raise TidingsError("painting needs both --brokers and --paint")
    settings = Settings(
        folder,
        open,
        body,
        backlog,
        allow=tuple(allow or ()),
        provider=provider,
        log=log or "info",
        readers=readers,
        tiles=tiles,
        brokers=brokers,
        paint=tuple(paint or ()),
        zones=zones,
        sparse=sparse,
    )
    if not readers:
        serve_folder(settings, host, port)
        return
    from tidings.serve.run.processes import supervise
    from tidings.serve.run.server import open_door

    supervise(settings, open_door(settings, host, port), readers)


@app.command()
def gateway(
    topic: Annotated[str, typer.Option(help="The topic whose watchers it serves.")],
    brokers: Annotated[str, typer.Option(help="Kafka, as host:9092.")],
    folder: Annotated[Path, typer.Option(help="Where keys and dead letters are.")] = Path("gateway"),
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes any that is free.")] = 8081,
    url: Annotated[str | None, typer.Option(help="What others reach it by, if that is another address.")] = None,
    open: Annotated[bool, typer.Option("--open", help="Let everybody in without a key; on loopback only.")] = False,
    hold: Annotated[float, typer.Option(help="Seconds that are told again when a zone is taken over.", min=0)] = 30.0,
    allow: Annotated[list[str] | None, typer.Option(help="A host in a private range that webhooks may reach.")] = None,
    log: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
) -> None:
    """Serve the watchers of a painted topic's zones, which Kafka's consumer group deals out."""
    need_server()
    from tidings.serve.gateway.gateway import GatewaySettings
    from tidings.serve.run.gateway import run_gateway

    run_gateway(GatewaySettings(topic, brokers, folder, open, hold, tuple(allow or ()), log), host, port, url)


@app.command()
def warm(
    processes: Annotated[int | None, typer.Option(help="How many compile at once; one a core by default.")] = None,
    carry: Annotated[Path | None, typer.Option(help="Compile for a baseline CPU into this folder, to be taken along.")] = None,
) -> None:
    """Compile every kernel now, into the cache that all processes of this user share, so that nothing is compiled later."""
    from tidings.warm import warming

    if carry is None:
        warming.warm(console, processes)
    else:
        warming.carry(carry)


COMMANDS: tuple[Callable[..., None], ...] = (
    *(topics.init, topics.topics, topics.stats),
    *(subscriptions.subscribe, subscriptions.unsubscribe, subscriptions.subscriptions, subscriptions.load, subscriptions.top),
    *(subscriptions.preview, events.publish, events.match, events.explain, events.search, events.listen),
)
for command in COMMANDS:
    app.command(rich_help_panel="Topics")(command)
app.add_typer(operating.keys, name="keys", rich_help_panel="Service")
app.add_typer(sinks.sinks, name="sinks", rich_help_panel="Service")
app.add_typer(sinks.letters, name="dead-letters", rich_help_panel="Service")


def main() -> None:
    try:
        app()
    except TidingsError as error:
        console.print(f"[red]tidings:[/red] {escape(str(error))}", highlight=False, soft_wrap=True)
        raise SystemExit(1) from None
