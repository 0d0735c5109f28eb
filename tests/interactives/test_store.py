"""The progress store's own tests run in Node: store.test.mjs says what they hold."""

from node_tools import run_node_tests


def test_the_store_keeps_days_reviews_and_files_as_promised() -> None:
    assert "fail 0" in run_node_tests("store.test.mjs")
