'use strict';
// Items on shelves, and what they weigh.
const { EventEmitter } = require('node:events');
const fs = require('node:fs/promises');

const LIMIT_KG = 1000;

/** Keeps items on numbered shelves, and tells its listeners when they change. */
class Store extends EventEmitter {
  static #count = 0;
  opened = false;

  constructor(name) {
    super();
    this.name = name;
    this.shelves = new Map();
    Store.#count += 1;
  }

  handleMove = (from, to) => {
    const moved = this.shelves.get(from) ?? [];
    this.shelves.set(to, moved);
    this.emit('moved', { from, to, count: moved.length });
  };

  // What is heavier than the limit has been refused, so that the sum is small.
  get weight() {
    return [...this.shelves.values()].flat().reduce((sum, item) => sum + item.weight, 0);
  }

  async restock(supplier, { urgent = false } = {}) {
    let arrived = 0;
    for (const [shelf, items] of this.shelves) {
      if (items.length > 0) {
        continue;
      }
      const [best] = await supplier.offers(shelf, { urgent });
      if (!best) {
        throw new Error(`nobody sells anything that fits on shelf ${shelf}`);
      }
      switch (Math.sign(LIMIT_KG - best.weight)) {
        case -1:
          this.emit('refused', { reason: 'too heavy to be put on any shelf', best });
          break;
        default:
          items.push(await supplier.order(best));
          arrived += 1;
      }
    }
    this.emit('restocked', { arrived, urgent, total: this.weight, name: this.name });
    return arrived;
  }
}

function* inventory(store) {
  for (const [number, items] of store.shelves) {
    yield `${number}: ${items.length} items, the heaviest of them ${Math.max(...items.map((i) => i.weight))} kg`;
  }
}

const load = async (path) => {
  const text = await fs.readFile(path, 'utf8');
  return JSON.parse(text, (key, value) => (key === 'weight' ? Number(value) : value));
};

Store.prototype.close = function () {
  this.opened = false;
  this.emit('closed', { name: this.name, weight: this.weight, shelves: this.shelves.size });
};

module.exports = {
  Store,
  open(path) {
    return load(path).then((items) => Object.assign(new Store(path), { items, opened: true }));
  },
  report: function (store) {
    return [...inventory(store)].join('\n') + `\nall of it together weighs ${store.weight} kg`;
  },
};
