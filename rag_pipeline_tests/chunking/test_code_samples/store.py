"""Items on shelves, and what they weigh."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from suppliers import Item, Supplier

LIMIT_KG = 1_000


def logged(function):
    """Print each call of the function before it is made, with the names of its arguments."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        print(function.__name__, args, sorted(kwargs))
        return function(*args, **kwargs)

    return wrapper


class Store:
    """Keeps items on numbered shelves.

    A store is opened empty. Shelves are made when the first item is put on them, and never taken away again.
    """

    shelves: dict[int, list[Item]]
    opened = False
    name = "main"

    def __init__(self, name: str = "main") -> None:
        self.shelves = {}
        self.name = name

    # What is heavier than the limit has been refused, so that the sum is small.
    @property
    @logged
    def weight(self) -> float:
        """In kilograms, of all items on all shelves together."""
        return sum(item.weight for shelf in self.shelves.values() for item in shelf)

    class Shelf:
        """A numbered place for items, which remembers how often something was taken from it."""

        def __init__(self, number: int) -> None:
            self.number = number
            self.taken = 0

        def take(self) -> None:
            """Count that something was taken, which happens often, and so does nothing else here."""
            self.taken += 1

    async def restock(self, supplier: Supplier, *, urgent: bool = False) -> int:
        """Order what is missing, and wait for it to arrive; the number of items that were put away."""
        missing = [shelf for shelf, items in self.shelves.items() if not items]
        if not missing:
            return 0
        arrived = 0
        for shelf in missing:
            offers = await supplier.offers(shelf, urgent=urgent)
            for offer in sorted(offers, key=lambda offer: offer.price):
                if offer.weight > LIMIT_KG:
                    print("too heavy to be put on any shelf of this store", offer)
                    continue
                self.shelves[shelf].append(await supplier.order(offer))
                arrived += 1
                break
            else:
                raise LookupError(f"nobody sells anything that fits on shelf {shelf}")

        if urgent and arrived < len(missing):
            await supplier.complain("fewer items arrived than shelves were empty")
        return arrived


def inventory(store: Store) -> Iterator[str]:
    """One line for each shelf, with the number of items on it and their weight in kilograms."""
    for number, items in store.shelves.items():
        yield f"{number}: {len(items)} items, {sum(item.weight for item in items)} kg"
