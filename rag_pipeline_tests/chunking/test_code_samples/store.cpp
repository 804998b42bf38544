// Items on shelves, and what they weigh.
#include <map>
#include <string>
#include <vector>

namespace store {

constexpr double kLimitKg = 1000;

struct Item {
  std::string name;
  double weight = 0;
};

enum class Urgency { kLow, kHigh };

/// Keeps items on numbered shelves, which are made when they are first used.
template <typename Supplier>
class Store : public Base {
 public:
  explicit Store(Supplier supplier) : supplier_(std::move(supplier)) {}
  Store(const Store&) = delete;
  ~Store() override { shelves_.clear(); }

  // What is heavier than the limit has been refused, so that the sum is small.
  [[nodiscard]] double weight() const {
    double total = 0;
    for (const auto& [number, items] : shelves_) {
      for (const auto& item : items) total += item.weight;
    }
    return total;
  }

  int restock(Urgency urgency);

  bool operator==(const Store& other) const { return shelves_ == other.shelves_; }

 private:
  std::map<int, std::vector<Item>> shelves_;
  Supplier supplier_;
};

template <typename Supplier>
int Store<Supplier>::restock(Urgency urgency) {
  int arrived = 0;
  for (auto& [number, items] : shelves_) {
    if (!items.empty()) continue;
    auto offers = supplier_.offers(number, urgency == Urgency::kHigh);
    if (offers.empty()) {
      throw std::runtime_error("nobody sells anything that fits on shelf " + std::to_string(number));
    }
    if (offers.front().weight > kLimitKg) {
      std::cerr << "too heavy to be put on any shelf of this store\n";
      continue;
    }
    try {
      supplier_.order(offers.front());
      items.push_back(offers.front());
    } catch (const std::exception& failure) {
      supplier_.complain(failure.what());
      throw;
    }
    ++arrived;
  }
  return arrived;
}

namespace reports {

std::vector<std::string> inventory(const std::map<int, std::vector<Item>>& shelves) {
  std::vector<std::string> lines;
  for (const auto& [number, items] : shelves) {
    lines.push_back(std::to_string(number) + ": " + std::to_string(items.size()) + " items");
  }
  return lines;
}

}  // namespace reports
}  // namespace store
