//! Items on shelves, and what they weigh.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::fmt;

const LIMIT_KG: f64 = 1_000.0;

/// A thing that is kept, with its weight in kilograms
/// and the name that people know it by.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    pub name: String,
    pub weight: f64,
}

#[derive(Debug)]
pub enum Refusal {
    TooHeavy { item: Item, limit: f64 },
    NoOffer(u32),
}

/// Sells items.
pub trait Supplier {
    fn offers(&self, shelf: u32) -> Vec<Item>;
    fn order(&mut self, item: &Item) -> Result<(), Refusal>;
    /// What it says when it has nothing to sell.
    fn excuse(&self) -> String {
        String::from("there is nothing to be had at the moment, please come back another day")
    }
}

pub struct Store<S> {
    shelves: BTreeMap<u32, Vec<Item>>,
    supplier: S,
}

impl<S: Supplier> Store<S> {
    pub fn new(supplier: S) -> Self {
        Self { shelves: BTreeMap::new(), supplier }
    }

    /// Of all items on all shelves together, in kilograms.
    #[inline]
    #[must_use]
    pub fn weight(&self) -> f64 {
        self.shelves.values().flatten().map(|item| item.weight).sum()
    }

    pub fn restock(&mut self) -> Result<usize, Refusal> {
        let mut arrived = 0;
        for (shelf, items) in self.shelves.iter_mut() {
            if !items.is_empty() {
                continue;
            }
            let offers = self.supplier.offers(*shelf);
            match offers.into_iter().min_by(|a, b| a.weight.total_cmp(&b.weight)) {
                None => return Err(Refusal::NoOffer(*shelf)),
                Some(item) if item.weight > LIMIT_KG => {
                    return Err(Refusal::TooHeavy { item, limit: LIMIT_KG });
                }
                Some(item) => {
                    self.supplier.order(&item)?;
                    items.push(item);
                    arrived += 1;
                }
            }
        }
        println!("restocked {arrived} shelves of {}", self.shelves.len());
        Ok(arrived)
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} kg, which is less than {}", self.name, self.weight, LIMIT_KG)
    }
}

mod reports {
    pub fn inventory(shelves: &[(u32, usize)]) -> Vec<String> {
        shelves.iter().map(|(number, count)| format!("{number}: {count} items on it")).collect()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_new_store_weighs_nothing_at_all() {
        assert_eq!(super::Store::new(super::fake()).weight(), 0.0, "there is nothing in it");
    }
}
