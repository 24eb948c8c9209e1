"""Counters of what was charged and used, per tenant and namespace."""

from gpumem_operator.reports.counters import ByteSeconds, Entry, Totals

ACCOUNT = ("research", "ml")


def entry(charged: int | None = 8, used: int | None = 5, *, started: bool = True) -> Entry:
    return Entry(ACCOUNT, charged, used, started)


def test_bytes_are_multiplied_by_time() -> None:
    counters = ByteSeconds()
    counters.advance([entry()], 100.0)
    assert counters.totals[ACCOUNT] == Totals(0, 0, 0)
    counters.advance([entry(), entry()], 110.0)
    assert counters.totals[ACCOUNT] == Totals(160, 100, 0)


def test_sums_stay_when_pods_end() -> None:
    counters = ByteSeconds()
    counters.advance([entry()], 0.0)
    counters.advance([entry()], 10.0)
    counters.advance([], 20.0)
    assert counters.totals[ACCOUNT] == Totals(80, 50, 0)


def test_time_without_a_measurement_is_counted_apart() -> None:
    counters = ByteSeconds()
    counters.advance([], 0.0)
    counters.advance([entry(used=None), entry(used=None, started=False)], 10.0)
    assert counters.totals[ACCOUNT] == Totals(160, 0, 10)


def test_accounts_go_with_their_namespace() -> None:
    counters = ByteSeconds()
    counters.advance([entry(), Entry(("", "web"), 1, 1, True)], 0.0)
    counters.keep(["web"])
    assert list(counters.totals) == [("", "web")]
