// A page that shows the items on the shelves of a store.
import React, { useEffect, useState } from "react";
import { load, type Item } from "./store";

type Props = { path: string; heading?: string };

/** One shelf, with its items; the heavy ones are marked, so that two people carry them. */
function Shelf({ number, items }: { number: number; items: Item[] }) {
  return (
    <section className="shelf">
      <h2>Shelf {number}</h2>
      <ul>
        {items.map((item) => (
          <li key={item.name} className={item.weight > 30 ? "heavy" : "light"}>
            {item.name}: {item.weight} kg
          </li>
        ))}
      </ul>
    </section>
  );
}

export const Summary = React.memo(({ items }: { items: Item[] }) => {
  const total = items.reduce((sum, item) => sum + item.weight, 0);
  return <p>There are {items.length} items here, which weigh {total} kg together.</p>;
});

export default function StorePage({ path, heading = "Store" }: Props) {
  const [items, setItems] = useState<Item[]>([]);
  const [error, setError] = useState<string | null>(null);

  useEffect(() => {
    load(path)
      .then((loaded) => setItems(loaded))
      .catch((reason) => setError(`the items could not be loaded: ${reason}`));
  }, [path]);

  if (error !== null) {
    return <p role="alert">{error}</p>;
  }
  return (
    <main>
      <h1>{heading}</h1>
      <Summary items={items} />
      <Shelf number={1} items={items.filter((item) => item.weight <= 30)} />
      <Shelf number={2} items={items.filter((item) => item.weight > 30)} />
    </main>
  );
}

class Boundary extends React.Component<{ children: React.ReactNode }> {
  state = { failed: false };

  // React calls this when anything below has thrown while it was being rendered.
  static getDerivedStateFromError(): { failed: boolean } {
    return { failed: true };
  }

  render(): React.ReactNode {
    return this.state.failed ? <p>Something went wrong; load the page again.</p> : this.props.children;
  }
}
