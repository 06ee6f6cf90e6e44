"""Plans, apply and destroy, grants, names from registries, secrets."""

from __future__ import annotations

from tools.seeded_faults.fault import Fault

DEPLOYMENT = (
    Fault(
        "one-game-too-many-on-a-cluster",
        "install_workflow/planning/rebalance.py",
        "if cluster is not None and taken[cluster] < per_cluster:",
        "if cluster is not None and taken[cluster] <= per_cluster:",
        "tests/unit/install_workflow/planning/test_rebalance_packing.py::test_the_games_too_many_leave_a_cluster_that_has_become_too_full",
    ),
    Fault(
        "deletes-too-much-without-force",
        "demux/cli/deploy/apply.py",
        "    if not force:\n        coming.require_modest()\n",
        "",
        "tests/unit/demux/cli/deploy/test_apply.py::test_more_than_a_quarter_of_the_games_goes_only_by_force",
    ),
    Fault(
        "record-of-another-overwritten",
        "install_workflow/databricks/api/versioned_file.py",
        "overwrite=False",
        "overwrite=True",
        "tests/unit/install_workflow/databricks/grants/test_apply.py"
        "::test_of_two_at_once_the_later_one_stops_before_any_change",
    ),
    Fault(
        "destroy-removes-any-folder-of-a-key",
        "install_workflow/destroy/plan.py",
        "if is_key(key) and path == layout.silver(key):",
        "if is_key(key):",
        "tests/unit/install_workflow/destroy/test_plan.py::test_a_file_that_somebody_wrote_into_removes_nothing_else",
    ),
    Fault(
        "grant-not-revoked",
        "install_workflow/databricks/grants/diff.py",
        "    ours = record.granted | record.begun\n",
        "    ours = record.granted\n",
        "tests/unit/install_workflow/databricks/grants/test_diff.py::test_an_apply_that_died_is_taken_up",
    ),
    Fault(
        "part-of-a-subject-names-a-game",
        "demux/core/settings/games.py",
        r'return rf"\A(?:{expression})\z"',
        r'return rf"(?:{expression})"',
        "tests/unit/demux/core/settings/test_games.py::test_a_game_is_what_the_group_has_where_the_whole_subject_suits",
    ),
    Fault(
        "secret-in-what-is-printed",
        "demux/core/kafka/client_options.py",
        "secret: Mapping[str, str] = field(repr=False)",
        "secret: Mapping[str, str] = field()",
        "tests/unit/demux/core/kafka/test_client_options.py::test_no_secret_is_in_what_is_printed",
    ),
)
