<?php

declare(strict_types=1);

namespace Example\Warehouse;

use InvalidArgumentException;
use Psr\Log\LoggerInterface;

const LIMIT_KG = 1000;

interface Supplier
{
    public function offers(int $shelf, bool $urgent): array;

    public function order(Item $item): bool;
}

enum Urgency: string
{
    case Low = 'low';
    case High = 'high';
}

/**
 * Keeps items on numbered shelves, which are made when they are first used.
 */
#[Entity(table: 'stores')]
final class Store implements \Countable
{
    private array $shelves = [];

    public function __construct(private Supplier $supplier, private LoggerInterface $logger)
    {
        $this->logger->info('a new store was opened with this supplier, and it is empty');
    }

    // What is heavier than the limit has been refused, so that the sum is small.
    #[Pure]
    public function weight(): float
    {
        return array_sum(array_map(fn (Item $item) => $item->weight, array_merge(...$this->shelves)));
    }

    public function restock(Urgency $urgency): int
    {
        $arrived = 0;
        foreach ($this->shelves as $shelf => $items) {
            if ($items !== []) {
                continue;
            }
            $offers = $this->supplier->offers($shelf, $urgency === Urgency::High);
            if ($offers === []) {
                throw new InvalidArgumentException("nobody sells anything that fits on shelf $shelf");
            } elseif ($offers[0]->weight > LIMIT_KG) {
                $this->logger->warning('too heavy to be put on any shelf of this store');
                continue;
            }
            if ($this->supplier->order($offers[0])) {
                $this->shelves[$shelf][] = $offers[0];
                $arrived++;
            }
        }
        $this->logger->info('restocked', ['arrived' => $arrived, 'shelves' => count($this->shelves)]);

        return $arrived;
    }

    public function count(): int
    {
        return count($this->shelves);
    }
}

function inventory(array $shelves): array
{
    return array_map(fn ($number, $items) => "$number: " . count($items) . ' items on this shelf', $shelves);
}
