/* Items on shelves, and what they weigh. */
package com.example.store;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Keeps items on numbered shelves, which are made when they are first used. */
@SuppressWarnings("unused")
public class Store<T extends Item> implements AutoCloseable {
    private static final double LIMIT_KG = 1000;
    private final Map<Integer, List<T>> shelves = new TreeMap<>();
    private final Supplier<T> supplier;

    public enum Urgency {
        LOW,
        HIGH;

        boolean isHigh() {
            return this == HIGH;
        }
    }

    public Store(Supplier<T> supplier) {
        this.supplier = supplier;
        System.out.println("a new store was opened with the supplier " + supplier);
    }

    // What is heavier than the limit has been refused, so that the sum is small.
    @Deprecated
    @SuppressWarnings("all")
    public double weight() {
        return shelves.values().stream().flatMap(List::stream).mapToDouble(Item::weight).sum();
    }

    /**
     * Orders what is missing.
     *
     * @return how many items arrived
     */
    public int restock(Urgency urgency) throws InterruptedException {
        int arrived = 0;
        for (Map.Entry<Integer, List<T>> shelf : shelves.entrySet()) {
            if (!shelf.getValue().isEmpty()) {
                continue;
            }
            List<T> offers = supplier.offers(shelf.getKey(), urgency.isHigh());
            if (offers.isEmpty()) {
                throw new IllegalStateException("nobody sells anything for shelf " + shelf.getKey());
            } else if (offers.get(0).weight() > LIMIT_KG) {
                System.err.println("too heavy to be put on any shelf of this store");
                continue;
            }
            try {
                supplier.order(offers.get(0));
                shelf.getValue().add(offers.get(0));
            } catch (RuntimeException failure) {
                supplier.complain(failure.getMessage());
                throw failure;
            }
            arrived++;
        }
        return arrived;
    }

    @Override
    public void close() {
        shelves.clear();
    }
}

interface Supplier<T> {
    List<T> offers(int shelf, boolean urgent) throws InterruptedException;

    void order(T item);

    void complain(String reason);
}

record Item(String name, double weight) {
    Item {
        if (weight < 0) {
            throw new IllegalArgumentException("an item weighs something, but this one weighs " + weight);
        }
    }
}
