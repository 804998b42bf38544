// Items on shelves, and what they weigh.
import Foundation

let limitKg = 1000.0

/// A thing that is kept, with its weight in kilograms.
struct Item: Codable {
    let name: String
    let weight: Double
}

enum Urgency {
    case low
    case high
}

protocol Supplier {
    func offers(shelf: Int, urgent: Bool) async throws -> [Item]
    func order(_ item: Item) async throws
}

/// Keeps items on numbered shelves, which are made when they are first used.
@MainActor
final class Store {
    private var shelves: [Int: [Item]] = [:]
    private let supplier: Supplier

    init(supplier: Supplier) {
        self.supplier = supplier
        print("a new store was opened with the supplier \(supplier), and there is nothing in it yet")
    }

    // What is heavier than the limit has been refused, so that the sum is small.
    @discardableResult
    func weight() -> Double {
        return shelves.values.joined().reduce(0) { $0 + $1.weight }
    }

    func restock(urgency: Urgency) async throws -> Int {
        var arrived = 0
        for (shelf, items) in shelves where items.isEmpty {
            let offers = try await supplier.offers(shelf: shelf, urgent: urgency == .high)
            guard let best = offers.first else {
                throw StoreError.nobodySells("nobody sells anything that fits on shelf \(shelf)")
            }
            if best.weight > limitKg {
                print("too heavy to be put on any shelf of this store", best)
                continue
            }
            switch urgency {
            case .low:
                shelves[shelf] = [best]
            case .high:
                try await supplier.order(best)
                shelves[shelf] = [best]
                arrived += 1
            }
        }
        print("restocked \(arrived) shelves of \(shelves.count)")
        return arrived
    }

    deinit {
        shelves.removeAll()
    }
}

// MARK: - Reports

extension Store: CustomStringConvertible {
    var description: String {
        return "a store with \(shelves.count) shelves, whose items together weigh \(weight()) kilograms"
    }

    func inventory() -> [String] {
        return shelves.map { number, items in "\(number): \(items.count) items, of \(items.first?.name ?? "none")" }
    }
}
