"""Kills a fleet's driver, workers and machine at random moments, round after round, wherever its root is.

At the end no row is lost and none doubled, in no table, and every value is what `google.protobuf` says.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from random import Random

from producer.run import ProduceReport
from producer.schemas import games as names
from tests.support.flow.fleet_driver import Driver, DriverReports, drivers, start_driver
from tests.support.flow.fleet_oracle import check_everything
from tests.support.flow.fleet_steps import Before, Landmark, Step
from tests.support.flow.process import DEMUX, running, wait_until
from tests.support.flow.root import Root

_PATIENCE_S = 120.0
BEFORE_FILES = (Step.NOTHING, Step.BRONZE, Step.PLAN)
BETWEEN_COMMITS = (Step.QUARANTINE, Step.SOME_GAMES)
# further ones, where chance has not brought about what is to be shown
_MOST_MORE = 80
_FLEET = {"engine": "fleet", "retry_wait_s": 0.0}
_VERSIONS = 4


class Victim(Enum):
    """What is killed."""

    DRIVER = "driver"
    WORKERS = "workers"
    MACHINE = "machine"


@dataclass(frozen=True, slots=True)
class Scale:
    """What is killed how often after what.

    Attributes:
        games: how many games there are.
        events: how many are sent before each kill.
        kills: how often.
        least: how many rounds must have come no further than one of these steps, or it proves little.
        jobs_lost: how often a Spark job, or a batch of bronze, must have failed as its workers were killed.
    """

    games: int
    events: int
    kills: Mapping[tuple[Victim, Landmark], int]
    least: tuple[tuple[tuple[Step, ...], int], ...]
    jobs_lost: int


@dataclass(frozen=True, slots=True)
class Kill:
    """A kill at a moment: after this share of the usual time between the landmark and the next one."""

    victim: Victim
    after: Landmark
    share: float


def kills_of(scale: Scale, random: Random) -> list[Kill]:
    """The kills in random order; the moments after the same landmark are spread over the whole time."""
    kills = [
        Kill(victim, after, (at + random.random()) / count)
        for (victim, after), count in scale.kills.items()
        for at in range(count)
    ]
    random.shuffle(kills)
    return kills


@dataclass(slots=True)
class Run:
    """A root on which everything dies, and what was sent to it.

    Attributes:
        root: the root.
        scale: how many games and events.
        random: decides.
        environment: further variables of the machine that is killed.
        reports: what was sent.
        spans_s: how long an undisturbed round took from each landmark to the next, and at last to the last commit.
        driver: the one at work, if one lives.
        jobs_lost: how often a Spark job, or a batch of bronze, failed as its workers were killed.
    """

    root: Root
    scale: Scale
    random: Random
    environment: Mapping[str, str] = field(default_factory=dict)
    reports: list[ProduceReport] = field(default_factory=list)
    spans_s: dict[Landmark, float] = field(default_factory=dict)
    driver: Driver | None = None
    jobs_lost: int = 0
    _drivers: int = 0
    _version: int = 1

    def send(self) -> Before:
        """Send new events, now and then some in a new version; return what the tables are before the next round."""
        self._produce(self.scale.events, self.scale.games, 1)
        if self.random.random() < 0.15:
            self._version = min(4, self._version + 1)
            self._produce(20, self.random.randint(1, 3), self._version)
        return Before.of(self.root, [game.name for game in names(self.scale.games)])

    def _produce(self, events: int, games: int, versions: int) -> None:
        self.reports.append(self.root.produce(events=events, games=games, versions=versions, fault_rate=0.15))

    def at_work(self, **run: object) -> Driver:
        """Return the driver that is at work, or a new one with these settings."""
        if self.driver is None:
            self._drivers += 1
            self.driver = start_driver(self.root, self._drivers, {**_FLEET, **run})
        self.driver.begin()
        return self.driver

    def kill_driver(self) -> DriverReports:
        """Kill the driver that is at work and return what it reported."""
        assert self.driver is not None
        driver, self.driver = self.driver, None
        return driver.kill()

    def undisturbed(self) -> None:
        """Send events and decode them all, by a new driver, and measure."""
        before, reached = self.send(), [time.monotonic()]
        driver = self.at_work()
        for landmark in list(Landmark)[1:]:
            watched(driver, partial(before.reached, landmark))
            reached.append(time.monotonic())
        watched(driver, lambda: driver.reports().ended == driver.reports().due)
        reached.append(time.monotonic())
        self.spans_s = {each: reached[at + 1] - reached[at] for at, each in enumerate(Landmark)}
        watched(driver, lambda: driver.reports().is_idle)
        assert self.kill_driver().failures == ()

    def kill(self, kill: Kill) -> Step:
        """Send events and kill; return how far the round had come."""
        # a little more: something must also come after the last commit
        before, delay_s = self.send(), 1.2 * kill.share * self.spans_s[kill.after]
        match kill.victim:
            case Victim.MACHINE:
                if self.driver is not None:
                    self.kill_driver()
                self._kill_machine(before, kill.after, delay_s)
                return before.step(DriverReports(), self.scale.games)
            case Victim.DRIVER:
                # now and then some of the rows must wait
                driver = self.at_work(rows_per_game=self.random.choice([5, 1_000_000]))
                moment(driver, before, kill.after, delay_s)
                return before.step(self.kill_driver(), self.scale.games)
            case Victim.WORKERS:
                driver, jobs = self.at_work(), self._jobs()
                moment(driver, before, kill.after, delay_s)
                self._kill_workers()
                step = before.step(driver.reports(), self.scale.games)
                # the driver goes on by itself
                rounds = driver.reports().rounds
                watched(driver, lambda: driver.reports().rounds > rounds)
                self.jobs_lost += bool(driver.reports().failures) or self._is_one_failed(self._jobs() - jobs)
                return step

    def _kill_machine(self, before: Before, after: Landmark, delay_s: float) -> None:
        settings = self.root.folder.with_name(f"{self.root.folder.name}.yml")
        settings.write_text(json.dumps(self.root.said(run={"engine": "fleet"})), "utf-8")
        with running([DEMUX, "run", "-c", str(settings)], self.environment) as process:
            wait_until(partial(before.reached, after), process)
            with suppress(subprocess.TimeoutExpired):
                process.wait(delay_s)
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL

    def _jobs(self) -> set[int]:
        """Return the numbers of the session's jobs, but those of queries."""
        return set(self.root.spark.sparkContext.statusTracker().getJobIdsForGroup(None))

    def _is_one_failed(self, jobs: Iterable[int]) -> bool:
        tracker = self.root.spark.sparkContext.statusTracker()
        return any(info is not None and info.status == "FAILED" for info in map(tracker.getJobInfo, jobs))

    def _kill_workers(self) -> None:
        """Kill what the daemons of the session's JVM have forked."""
        machine = self.root.spark.sparkContext._jvm.java.lang.ProcessHandle.current()  # type: ignore[union-attr]
        for daemon in machine.children().toArray():
            for worker in daemon.descendants().toArray():
                worker.destroyForcibly()


def watched(driver: Driver, condition: Callable[[], bool]) -> None:
    """Return when the condition holds; fail when the driver ends before, or it never does."""
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        # also the pause between two looks
        driver.process.join(0.002)
        assert driver.process.is_alive(), driver.reports()
        assert time.monotonic() < deadline, driver.reports()


def moment(driver: Driver, before: Before, after: Landmark, delay_s: float) -> None:
    """Return so long after the landmark; or after the round, where that has nothing to reach it with."""
    watched(driver, lambda: before.reached(after) or driver.reports().rounds > 0)
    driver.process.join(delay_s)
    assert driver.process.is_alive(), driver.reports()


def enough(run: Run, steps: Counter[Step]) -> Iterator[Kill]:
    """Yield all kills, and then a few of a kind that chance has not brought about often enough."""
    yield from kills_of(run.scale, run.random)
    after = {BEFORE_FILES: Landmark.BEGIN, (Step.FILES,): Landmark.FILES, BETWEEN_COMMITS: Landmark.QUARANTINE}
    for _ in range(_MOST_MORE):
        rare = [those for those, least in run.scale.least if sum(steps[step] for step in those) < least]
        if rare:
            yield Kill(Victim.DRIVER, after[rare[0]], run.random.random() / 2)
        elif run.jobs_lost < run.scale.jobs_lost:
            yield Kill(Victim.WORKERS, Landmark.FILES, run.random.random() / 4)


def kill_and_compare(run: Run) -> None:
    """Kill, round after round, let one come to its end, and compare every row with what was sent."""
    root, scale = run.root, run.scale
    steps: Counter[Step] = Counter()
    with drivers(root.spark):
        # the first one makes the tables
        run.undisturbed()
        run.undisturbed()
        print({each.value: f"{span:.3f} s" for each, span in run.spans_s.items()})
        for number, kill in enumerate(enough(run, steps), 1):
            began = time.monotonic()
            step = run.kill(kill)
            steps[step] += 1
            line = f"{number}. {kill.victim.value}, {kill.share:.0%} after {kill.after.value}: {step.value}"
            print(f"{line} ({time.monotonic() - began:.1f} s)", flush=True)
        if run.driver is not None:
            run.kill_driver()
        run.undisturbed()
    print({step.value: steps[step] for step in Step}, f"{run.jobs_lost} jobs lost")
    assert steps.total() >= sum(scale.kills.values())
    assert [those for those, least in scale.least if sum(steps[step] for step in those) < least] == []
    assert run.jobs_lost >= scale.jobs_lost
    began = time.monotonic()
    check_everything(root, run.reports)
    print(f"compared in {time.monotonic() - began:.1f} s")
