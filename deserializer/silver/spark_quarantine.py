"""The quarantine table where only Spark can open or write it; `file_quarantine.py` says what it is for."""

from __future__ import annotations

from demux.core.delta.app_transactions import Transactions, transactions
from demux.core.storage.files import Storage
from demux.core.streaming.bronze_offset import BronzeOffset
from deserializer.silver.file_quarantine import transaction_id


class QuarantineBySpark:
    """The table, there or not yet.

    Attributes:
        path: where it is.
    """

    def __init__(self, storage: Storage, path: str, app_id: str) -> None:
        """Prepare; `app_id` is that of positions."""
        self.path = path
        self._storage = storage
        self._app_id = app_id
        self._known: Transactions | None = None

    def refresh(self) -> None:
        """Read what was committed since the last call."""
        self._known = transactions(self._storage, self.path, transaction_id(self._app_id, ""), self._known)

    def position(self, key: str) -> BronzeOffset | None:
        """Return up to where the game's bad rows are in the table; None when it had none yet."""
        assert self._known is not None, "it was refreshed"
        number = self._known.by_id.get(transaction_id(self._app_id, key))
        return None if number is None else BronzeOffset.of(number)
