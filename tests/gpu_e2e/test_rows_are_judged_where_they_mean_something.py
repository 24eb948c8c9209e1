"""Times of a simulated card are shown, in rows, table and closing line, and judged in none."""

from __future__ import annotations

from gpu_e2e.row import Row, as_table, closing, same, told, within

WHY = "shown, not judged: the card is simulated"
LATE = within("Kill: free after", 3.0, 3.65, of="the interval")
SPEED = Row("a training step", "<= 1.03", "0.822", True, 0.034)


def test_a_time_on_a_real_card_is_judged() -> None:
    assert closing([[LATE, SPEED]], 361.2) == "361 s, 1 missed"
    assert "| 3.65 s | <= 3.00 s (the interval) | **miss** |" in as_table({"overuse": [LATE]})


def test_a_time_on_a_simulated_card_is_shown_and_neither_missed_nor_passed() -> None:
    rows = [one.on_simulated_card() for one in (LATE, SPEED, same("who", "MPS", "MPS"))]

    assert closing([rows], 361.2) == f"361 s, 0 missed, 2 {WHY}"
    assert rows[0].as_line() == (
        f"      Kill: free after: 3.65 s (expected: <= 3.00 s (the interval); {WHY})"
    )
    table = as_table({"overuse": rows})
    assert f"| 3.65 s | <= 3.00 s (the interval) | {WHY} |" in table
    assert f"| 0.822 | <= 1.03 | {WHY} |" in table
    assert "| MPS | MPS | pass |" in table


def test_what_did_not_come_about_at_all_is_missed_on_a_simulated_card_too() -> None:
    assert within("Kill: free after", 3.0, None).on_simulated_card().good is False


def test_a_fact_stays_one() -> None:
    assert told("seconds", 3).on_simulated_card() == told("seconds", 3)
