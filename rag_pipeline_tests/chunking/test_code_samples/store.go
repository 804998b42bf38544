// Package store keeps items on shelves.
package store

import (
	"context"
	"errors"
	"fmt"
)

// Limits of a shelf.
const (
	LimitKg    = 1000
	MaxShelves = 64
)

// ErrTooHeavy is returned for items that no shelf can hold.
var ErrTooHeavy = errors.New("store: too heavy to be put on any shelf")

// Item is a thing that is kept, with its weight in kilograms
// and the name that people know it by.
type Item struct {
	Name   string  `json:"name"`
	Weight float64 `json:"weight"`
}

type (
	// Supplier sells items.
	Supplier interface {
		Offers(ctx context.Context, shelf int) ([]Item, error)
		Order(ctx context.Context, item Item) error
	}
	// Shelves are numbered from zero.
	Shelves map[int][]Item
)

// Store keeps items on numbered shelves.
type Store[T any] struct {
	shelves Shelves
	extra   T
}

// Weight of all items in kilograms.
//
//go:noinline
func (s *Store[T]) Weight() float64 {
	total := 0.0
	for _, items := range s.shelves {
		for _, item := range items {
			total += item.Weight
		}
	}
	return total
}

// Restock orders what is missing, and returns the number of items that arrived.
func (s *Store[T]) Restock(ctx context.Context, supplier Supplier, urgent bool) (int, error) {
	arrived := 0
	for shelf, items := range s.shelves {
		if len(items) > 0 {
			continue
		}
		offers, err := supplier.Offers(ctx, shelf)
		if err != nil {
			return arrived, fmt.Errorf("shelf %d: no offers could be had: %w", shelf, err)
		}
		switch {
		case len(offers) == 0:
			return arrived, fmt.Errorf("nobody sells anything that fits on shelf %d", shelf)
		case offers[0].Weight > LimitKg:
			return arrived, ErrTooHeavy
		default:
			s.shelves[shelf] = append(items, offers[0])
		}
		if err := supplier.Order(ctx, offers[0]); err != nil {
			return arrived, err
		}
		arrived++
	}
	return arrived, nil
}

// Inventory has one line for each shelf, with the number of items on it.
func Inventory(shelves Shelves) []string {
	lines := make([]string, 0, len(shelves))
	for number, items := range shelves {
		lines = append(lines, fmt.Sprintf("%d: %d items", number, len(items)))
	}
	return lines
}
