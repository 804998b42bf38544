// Items on shelves, and what they weigh.
package com.example.store

import java.util.TreeMap

const val LIMIT_KG = 1000.0

/** A thing that is kept, with its weight in kilograms and the name that people know it by. */
data class Item(val name: String, val weight: Double)

enum class Urgency { LOW, HIGH }

/** Sells items. */
interface Supplier {
    suspend fun offers(shelf: Int, urgent: Boolean): List<Item>
    suspend fun order(item: Item)
}

/** Keeps items on numbered shelves, which are made when they are first used. */
open class Store(private val supplier: Supplier) : AutoCloseable {
    private val shelves = TreeMap<Int, MutableList<Item>>()
    var opened = false
        private set

    init {
        println("a new store was opened with the supplier $supplier, which may or may not have items")
    }

    companion object {
        fun of(supplier: Supplier, count: Int): Store {
            return Store(supplier).also { store -> repeat(count) { store.shelves[it] = mutableListOf() } }
        }
    }

    // What is heavier than the limit has been refused, so that the sum is small.
    @JvmName("totalWeight")
    fun weight(): Double {
        return shelves.values.flatten().sumOf { item -> item.weight }
    }

    suspend fun restock(urgency: Urgency): Int {
        var arrived = 0
        for ((shelf, items) in shelves) {
            if (items.isNotEmpty()) {
                continue
            }
            val offers = supplier.offers(shelf, urgent = urgency == Urgency.HIGH)
            when {
                offers.isEmpty() -> throw IllegalStateException("nobody sells anything for shelf $shelf")
                offers.first().weight > LIMIT_KG -> println("too heavy to be put on any shelf of this store")
                else -> {
                    supplier.order(offers.first())
                    items.add(offers.first())
                    arrived += 1
                }
            }
        }
        println("restocked $arrived shelves of ${shelves.size}")
        return arrived
    }

    override fun close() {
        shelves.clear()
    }
}

object Registry {
    private val stores = mutableMapOf<String, Store>()

    fun register(name: String, store: Store) {
        check(stores.put(name, store) == null) { "there is a store with the name $name already" }
    }
}

fun Store.report(heading: String): String {
    return "$heading: all items in this store together weigh ${weight()} kilograms, and it is open: $opened"
}
