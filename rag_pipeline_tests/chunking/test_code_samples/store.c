/* Items on shelves, and what they weigh. */
#include <stdio.h>
#include <stdlib.h>
#include "store.h"

#define LIMIT_KG 1000
#define MAX(a, b) ((a) > (b) ? (a) : (b))

enum urgency { URGENCY_LOW, URGENCY_HIGH };

/* A thing that is kept, with its weight in kilograms
 * and the name that people know it by. */
struct item {
    char name[64];
    double weight;
    struct item *next;
};

typedef struct shelf {
    int number;
    size_t count;
    struct item *items;
} shelf_t;

struct store {
    shelf_t *shelves;
    size_t count;
};

/* Of all items on all shelves together, in kilograms.
 * What is heavier than the limit has been refused. */
static double
store_weight(const struct store *store)
{
    double total = 0;
    for (size_t i = 0; i < store->count; i++) {
        for (struct item *item = store->shelves[i].items; item; item = item->next) {
            total += item->weight;
        }
    }
    return total;
}

#ifdef STORE_DEBUG
static void store_dump(const struct store *store, FILE *out)
{
    fprintf(out, "store of %zu shelves, which weighs %f kg\n", store->count, store_weight(store));
}
#endif

int store_restock(struct store *store, struct supplier *supplier, enum urgency urgency)
{
    int arrived = 0;
    for (size_t i = 0; i < store->count; i++) {
        shelf_t *shelf = &store->shelves[i];
        if (shelf->count > 0)
            continue;
        struct item *offer = supplier_offer(supplier, shelf->number, urgency == URGENCY_HIGH);
        if (offer == NULL) {
            fprintf(stderr, "nobody sells anything that fits on shelf %d\n", shelf->number);
            return -1;
        } else if (offer->weight > LIMIT_KG) {
            fprintf(stderr, "too heavy to be put on any shelf: %s\n", offer->name);
            free(offer);
            continue;
        }
        switch (supplier_order(supplier, offer)) {
        case 0:
            offer->next = shelf->items;
            shelf->items = offer;
            arrived++;
            break;
        default:
            free(offer);
        }
    }
    return arrived;
}
