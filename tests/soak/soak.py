"""The soak: a live stream, repairs beside it, some of them killed; and at the end the ledger must balance."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from itertools import islice
from pathlib import Path

from demux.core.settings.loading.yaml_positions import text_of
from tests.soak.acts import Act, Deed, Odds, deeds, words
from tests.soak.people import people, remembered
from tests.soak.processes import Ended, LiveRun, Processes, tail
from tests.soak.sending import Load, Sending
from tests.soak.verdict import failed_tasks, mistakes, warnings
from tests.support.spark_session import INTERPRETED

# runs a command to its end
Runs = Callable[[Sequence[str]], Ended]

_GAME = "chess"
_FIRST_ROUND_S = 180.0
_LOOK_S = 0.1
# of `demux forget`: some records were not decoded yet
_NOT_ALL_SEARCHED = 7


@dataclass(frozen=True, slots=True)
class Plan:
    """How long and how rough.

    Attributes:
        seconds: how long repairs are started, or until each act has been; what is under way then may end.
        seed: of the chance.
        workers: how many repairs at the same time.
        engine: what decodes (`run.engine`).
        odds: what happens.
        load: what is sent.
    """

    seconds: float
    seed: int = 1
    workers: int = 2
    engine: str = "auto"
    odds: Odds = field(default_factory=Odds)
    load: Load = field(default_factory=Load)


class Soak:
    """One soak in a folder of its own."""

    def __init__(self, folder: Path, plan: Plan, say: Callable[[str], None]) -> None:
        """Prepare; nothing is started. `say` is told each thing that happens."""
        self.root = folder / "root"
        self.failures: list[str] = []
        self.forgotten: dict[str, frozenset[str]] = {}
        self.done: Counter[str] = Counter()
        self._acts: set[Act] = set()
        self._plan = plan
        self._rng = random.Random(plan.seed)
        self._deeds = deeds(self._rng, plan.odds)
        self._next = threading.Lock()
        self._over = threading.Event()
        self._begun = time.monotonic()
        self._print = say
        logs = folder / "logs"
        logs.mkdir(parents=True)
        settings = folder / "soak.yml"
        settings.write_text(text_of(_settings(plan)), "utf-8")
        self.options = ("--root", str(self.root), "--settings", str(settings))
        self._processes = Processes(self.root, self.options, logs)
        self._sending = Sending(self.root, folder / "registry", plan.load, plan.seed)
        today = datetime.now(timezone.utc).date()
        self._days = (str(today - timedelta(days=1)), str(today))

    def live(self) -> None:
        """Let everything work together for the plan's time, and until each act has been; then nothing is half done."""
        self._sending.send(1, 1)
        sender = threading.Thread(target=self._guarded, args=(self._send,))
        workers = [threading.Thread(target=self._guarded, args=(self._work,)) for _ in range(self._plan.workers)]
        try:
            self._run = LiveRun(self._processes, ("run", "--every", "1s"), self._fail)
            self._await_first_round()
            self._begun = time.monotonic()
            for thread in (sender, *workers):
                thread.start()
            while time.monotonic() - self._begun < self._plan.seconds or not self._had_everything:
                self._run.require()
                time.sleep(_LOOK_S)
            self._over.set()
            for thread in (sender, *workers):
                thread.join()
            self._stop_run()
        finally:
            self._over.set()
            self._processes.kill_all()

    def in_turn(self, run: Runs) -> None:
        """Do each act once, one after the other, each behind a round with new events."""
        acts = len(self._plan.odds.acts)
        for number, deed in enumerate(islice(self._deeds, acts)):
            self._sending.at((number + 1) / acts)
            self._must(run, ("run",))
            self._do(deed, run)

    def rest(self, run: Runs | None = None) -> None:
        """Let the root come to rest, and look whether all is well; `run` runs commands, or processes of their own."""
        run = run or self._processes.run
        self._sending.publish_all()
        for command in (("quarantine", "replay"), ("run",), ("reconcile", "--all")):
            self._must(run, command)
        for wrong in self.mistakes():
            self._fail(wrong)

    def mistakes(self) -> Iterator[str]:
        """Yield what is wrong in the tables."""
        yield from remembered(self.root, self.forgotten)
        yield from failed_tasks(self.root)
        yield from warnings(self.root)
        yield from mistakes(self.root)

    def summary(self) -> str:
        """Return what happened, in a line."""
        acts = ", ".join(f"{count} {name}" for name, count in sorted(self.done.items()))
        people_gone = f"{len(self.forgotten)} people forgotten"
        return f"{self._sending.sent:,} records sent; {acts}; {people_gone}; {len(self.failures)} failures"

    @property
    def _had_everything(self) -> bool:
        return self._acts >= set(self._plan.odds.acts)

    def _send(self) -> None:
        self._sending.until(self._over, self._begun, self._plan.seconds, time.monotonic)

    def _work(self) -> None:
        while not self._over.is_set():
            with self._next:
                deed = next(self._deeds)
            self._do(deed, self._processes.run)
            self._acts.add(deed.act)

    def _must(self, run: Runs, command: Sequence[str]) -> None:
        ended = run(command)
        self._say(f"{' '.join(command)}: exit code {ended.code} after {ended.seconds:.0f} s")
        if ended.code:
            self._fail(f"`demux {' '.join(command)}` ended with {ended.code}: {tail(ended.text, 40)}")

    def _do(self, deed: Deed, run: Runs) -> None:
        if deed.act is Act.KILL_RUN:
            self._say("the run is killed, and started again")
            self._run.kill()
            self.done["run killed"] += 1
            return
        known = people(self.root) if deed.act is Act.FORGET else {"nobody": frozenset[str]()}
        person = self._rng.choice(sorted(known))
        command = words(deed.act, self._rng, self._days, _GAME, person)
        if deed.kill_after_s is not None:
            killed = self._processes.run(command, deed.kill_after_s)
            self._report(command, killed)
        ended = run(command)
        self._report(command, ended)
        if deed.act is Act.FORGET and ended.code == 0:
            self.forgotten[person] = self.forgotten.get(person, frozenset()) | known[person]

    def _report(self, command: Sequence[str], ended: Ended) -> None:
        shown = " ".join(command)
        what = "killed" if ended.code < 0 else f"exit code {ended.code}"
        self._say(f"{shown}: {what} after {ended.seconds:.0f} s")
        self.done[f"{command[0]} killed" if ended.code < 0 else command[0]] += 1
        allowed = (0, -9, _NOT_ALL_SEARCHED) if command[0] == "forget" else (0, -9)
        if ended.code not in allowed:
            self._fail(f"`demux {shown}` ended with {ended.code}: {tail(ended.text)}")

    def _stop_run(self) -> None:
        ended = self._run.stop()
        self._say(f"the run was told to stop: exit code {ended.code} after {ended.seconds:.0f} s")
        if ended.code:
            self._fail(f"the run, told to stop, ended with {ended.code}: {tail(ended.text)}")

    def _await_first_round(self) -> None:
        first = self.root / "silver" / _GAME / "_delta_log"
        deadline = time.monotonic() + _FIRST_ROUND_S
        while not first.exists():
            self._run.require()
            if self.failures or time.monotonic() > deadline:
                raise TimeoutError(f"the first round does not end: {self.failures}")
            time.sleep(_LOOK_S)
        self._say("the first round has written silver")

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # as a thread that ends without a word would be a soak that proves nothing
            self._fail(f"the soak itself failed: {type(error).__name__}: {error}")
            self._acts = set(Act)

    def _fail(self, what: str) -> None:
        self.failures.append(what)
        self._say(f"FAILED {what}")

    def _say(self, what: str) -> None:
        self._print(f"{time.monotonic() - self._begun:5.0f} s  {what}")


def _settings(plan: Plan) -> dict[str, object]:
    # tables are also maintained by the run itself, every minute
    return {"run": {"engine": plan.engine}, "maintain": {"every": "1m"}, "spark": {"conf": dict(INTERPRETED)}}
