"""Commands that move data: init, produce, ingest, run, deserialize, demo."""

from __future__ import annotations

from pathlib import Path

import typer

from demux.cli.options import DECODER, GAMES, JSON, QUIET, ROOT, SET, SETTINGS, WAIT, ObjectStore, runs

EVERY = typer.Option(None, help="Repeat until Ctrl-C, one round every 30s, 5m or 1h.", metavar="TIME")


def init(
    file: Path = typer.Argument(Path("demux.yml"), help="The file to write."),
    force: bool = typer.Option(False, "--force", help="Overwrite the file if it is there."),
) -> None:
    """Write a settings file with every setting, its default and a comment.

    Example: `demux init` then edit `demux.yml`.
    """
    from demux.cli.run.produce import init as work

    work(file, force)


@runs("demux.cli.run.produce:produce")
def produce(
    events: int = typer.Option(20_000, help="New events."),
    games: int = typer.Option(20, help="Games with plain names."),
    hostile: int = typer.Option(0, help="More games, with names that try to do harm (at most 10)."),
    versions: int = typer.Option(3, help="Schema versions of each game."),
    fault_rate: float = typer.Option(0.01, help="Share of faulty events, 0 to 1."),
    seed: int = typer.Option(1, help="The same seed gives the same events."),
    resend: int = typer.Option(0, help="First send this many of the newest messages again."),
    clean: bool = typer.Option(False, "--clean-up", help="Remove what the producer made, and only that."),
    quiet: bool = QUIET,
) -> None:
    """Send simulated events of many games, wrapped, to the source table or topic; register their schemas.

    Calling it again sends the next events.

    Example: `demux produce --events 100000 --games 50 --fault-rate 0.02`
    """


@runs("demux.cli.run.run:ingest")
def ingest(
    quiet: bool = QUIET,
    wait: bool = WAIT,
    every: str | None = EVERY,
    deployment_record: Path | None = typer.Option(
        None,
        "--deployment-record",
        help="Folder of the record that `demux apply` keeps; copied to the table control/deployments.",
        metavar="FOLDER",
    ),
    accept_gaps: bool = typer.Option(
        False,
        "--accept-gaps",
        help="Continue where Kafka has lost records that were not read yet; writes the gap down.",
    ),
) -> None:
    """Read all new records of the source into bronze, or into quarantine.

    Example: `demux ingest --set source.path=/data/wrappers`
    """


@runs("demux.cli.run.run:run")
def run(
    decoder: str | None = DECODER,
    json: bool = JSON,
    quiet: bool = QUIET,
    wait: bool = WAIT,
    every: str | None = EVERY,
) -> None:
    """Run bronze, then every game of the plan that has new rows. SIGINT and SIGTERM finish what is under way.

    Example: `demux run --every 30s`
    """


@runs("demux.cli.run.run:deserialize")
def deserialize(
    games: list[str] = GAMES,
    keys: list[str] = typer.Option(
        [], "--game-key", help="A game by its key, the name of its table. May be repeated.", metavar="KEY"
    ),
    decoder: str | None = DECODER,
    json: bool = JSON,
    quiet: bool = QUIET,
    wait: bool = WAIT,
    ignore_unknown: bool = typer.Option(
        False,
        "--ignore-unknown",
        help="A game that bronze has no rows of is nothing to do, and no error. Tasks of a job are given this.",
    ),
) -> None:
    """Decode the new bronze rows of one game or several into their silver tables; a game's failure stops no other.

    Example: `demux deserialize --game chess`
    """


def demo(
    events: int = typer.Option(20_000, help="New events."),
    games: int = typer.Option(20, help="Games."),
    kafka: bool = typer.Option(
        False, "--kafka", help="Over a broker and a schema registry, such as those that `make up` starts."
    ),
    store: ObjectStore | None = typer.Option(
        None, "--store", help="In an object store, such as the S3 server that `make up` starts."
    ),
    quiet: bool = QUIET,
    settings_file: Path | None = SETTINGS,
    root: str | None = ROOT,
    changes: list[str] = SET,
) -> None:
    """Produce events of 20 games in 3 schema versions, 1 % of them faulty, run everything, and show where they are.

    Calling it again continues with new events; nothing is doubled.

    Example: `demux demo --events 100000`
    """
    from demux.cli.run.demo import demo as work

    work(events, games, kafka, store, settings_file, root, changes)


def prepare() -> None:
    """Fetch what Spark needs and keep an archive of the JVM's classes, so that later commands start in half the time.

    For this user, this Spark and this Java; takes a minute. In an image of a container, it belongs to the build.

    Example: `demux prepare`
    """
    from demux.cli.run.demo import prepare as work

    work()
