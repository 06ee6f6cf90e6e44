"""Which calls fail, how, and whether they had their effect before."""

from __future__ import annotations

import re
import threading
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum

from tests.fakes.workspace.http.exchange import Answer, Refused, Request

# more than any test makes
ALWAYS = 1_000_000_000


class Way(Enum):
    """How a call fails."""

    THROTTLED = "429"
    INTERNAL_ERROR = "500"
    UNAVAILABLE = "503"
    DENIED = "403"
    RESET = "connection reset"
    SILENT = "no answer until the client gives up"
    OTHER = "another answer than the workspace's own"


class When(Enum):
    """On which side of its effect a call fails."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Fault:
    """Some calls that fail.

    Attributes:
        way: how they fail.
        nth: the first call that fails, of those that match, counted from 1 since the fault was planned.
        when: before or after the workspace did what was asked.
        method: of the calls that match; "" = of any method.
        path: a regular expression found somewhere in the path of the calls that match; "" = any path.
        times: how many calls in a row fail; repetitions by the client are calls.
        retry_after_s: what `Retry-After` says, with 429 and 503.
        answer: what comes in place of the workspace's own answer, with `OTHER`.
    """

    way: Way
    nth: int = 1
    when: When = When.BEFORE
    method: str = ""
    path: str = ""
    times: int = 1
    retry_after_s: int = 0
    answer: Answer | None = None

    def matches(self, request: Request) -> bool:
        """Whether the call is one of those that are counted."""
        return self.method in ("", request.method) and re.search(self.path, request.path) is not None

    def answered(self) -> Answer | None:
        """What is answered; None = nothing is."""
        refusal = self._refusal()
        return refusal.answer if refusal else self.answer

    def _refusal(self) -> Refused | None:
        wait = {"Retry-After": str(self.retry_after_s)}
        match self.way:
            case Way.THROTTLED:
                return Refused(429, "REQUEST_LIMIT_EXCEEDED", "Too many requests. Please wait a moment.", wait)
            case Way.INTERNAL_ERROR:
                return Refused(500, "INTERNAL_ERROR", "There was an internal error.")
            case Way.UNAVAILABLE:
                return Refused(503, "TEMPORARILY_UNAVAILABLE", "The service is temporarily unavailable.", wait)
            case Way.DENIED:
                return Refused(403, "PERMISSION_DENIED", "Access was withdrawn.")
            case Way.RESET | Way.SILENT | Way.OTHER:
                return None


@dataclass(slots=True)
class Faults:
    """The faults of a workspace.

    Attributes:
        planned: the faults to come; to be changed by `plan` and `clear`.
        happened: each call that failed, with its fault, in order.
        hit: set as soon as a call failed.
    """

    planned: list[Fault] = field(default_factory=list)
    happened: list[tuple[Fault, Request]] = field(default_factory=list)
    hit: threading.Event = field(default_factory=threading.Event)
    _seen: Counter[int] = field(default_factory=Counter)

    def plan(self, *faults: Fault) -> None:
        """Let these faults come, and no others; they count the calls from here on."""
        self.clear()
        self.planned.extend(faults)

    def clear(self) -> None:
        """Let no call fail any more, and forget what happened."""
        self.planned.clear()
        self.happened.clear()
        self.hit.clear()
        self._seen.clear()

    def of(self, request: Request) -> Fault | None:
        """The fault of this call, which is counted by this."""
        found = [fault for number, fault in enumerate(self.planned) if self._due(number, fault, request)]
        if not found:
            return None
        self.happened.append((found[0], request))
        self.hit.set()
        return found[0]

    def _due(self, number: int, fault: Fault, request: Request) -> bool:
        if not fault.matches(request):
            return False
        self._seen[number] += 1
        return fault.nth <= self._seen[number] < fault.nth + fault.times
