"""Amounts of money: whole cents, shown in euros."""


def show(cents: int) -> str:
    """12.34 for 1234."""
    return f"{cents // 100}.{cents % 100}"
