// Items on shelves, and what they weigh.
import { Injectable, Input } from "@angular/core";
import type { Supplier } from "./supplier";

export interface Item {
  name: string;
  weight: number;
}

export enum Urgency {
  Low = "low",
  High = "high",
}

export type Shelves = Map<number, Item[]>;

/** Keeps items on numbered shelves, which are made when they are first used. */
@Injectable({ providedIn: "root" })
export class Store<T extends Item> {
  private readonly shelves: Shelves = new Map();
  opened = false;

  constructor(private readonly name: string, private readonly supplier: Supplier) {
    console.log("a new store with this name was opened", name);
  }

  onMove = async (from: number, to: number): Promise<void> => {
    const moved = this.shelves.get(from)?.splice(0) ?? [];
    this.shelves.set(to, [...(this.shelves.get(to) ?? []), ...moved]);
  };

  // What is heavier than the limit has been refused, so that the sum is small.
  @Input()
  weight(): number {
    let total = 0;
    for (const items of this.shelves.values()) {
      total += items.reduce((sum, item) => sum + item.weight, 0);
    }
    return total;
  }

  async restock(urgency: Urgency): Promise<number> {
    const missing = [...this.shelves].filter(([, items]) => items.length === 0);
    let arrived = 0;
    for (const [shelf, items] of missing) {
      const offers = await this.supplier.offers(shelf, { urgent: urgency === Urgency.High });
      if (offers.length === 0) {
        throw new Error(`nobody sells anything that fits on shelf ${shelf}`);
      } else if (offers[0].weight > 1000) {
        console.warn("too heavy to be put on any shelf of this store", offers[0]);
        continue;
      }
      items.push(await this.supplier.order(offers[0]));
      arrived += 1;
    }
    if (urgency === Urgency.High && arrived < missing.length) {
      await this.supplier.complain("fewer items arrived than shelves were empty");
    }
    return arrived;
  }
}

export namespace reports {
  export function inventory(store: Store<Item>): string[] {
    return [`the store weighs ${store.weight()} kg, which is less than it could hold, as ever`];
  }
}

export const heaviest = (items: Item[]): Item | undefined => {
  const sorted = [...items].sort((one, other) => other.weight - one.weight);
  return sorted.length > 0 ? sorted[0] : undefined;
};

export const routes = {
  load(path: string) {
    return fetch(path).then((response) => response.json() as Promise<Item[]>);
  },
  save: async (path: string, items: Item[]) => {
    await fetch(path, { method: "PUT", body: JSON.stringify(items), headers: { accept: "*/*" } });
  },
};

describe("Store", () => {
  it("weighs nothing when it is new", () => {
    const store = new Store("test", new FakeSupplier({ offers: [], delay: 0 }));
    expect(store.weight()).toBe(0);
  });
});
