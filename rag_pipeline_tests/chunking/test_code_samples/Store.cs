// Items on shelves, and what they weigh.
using System;
using System.Collections.Generic;
using System.Linq;

namespace Example.Stores;

public record Item(string Name, double Weight);

public enum Urgency
{
    Low,
    High,
}

public interface ISupplier
{
    Task<IReadOnlyList<Item>> OffersAsync(int shelf, bool urgent);

    Task OrderAsync(Item item);
}

/// <summary>Keeps items on numbered shelves.</summary>
[Serializable]
public class Store<T> : IDisposable where T : ISupplier
{
    private const double LimitKg = 1000;
    private readonly SortedDictionary<int, List<Item>> _shelves = new();
    private readonly T _supplier;

    public Store(T supplier)
    {
        _supplier = supplier;
        Console.WriteLine($"a new store was opened with the supplier {supplier}, and it is empty");
    }

    public bool IsOpen
    {
        get => _shelves.Count > 0;
        set => throw new NotSupportedException("a store is open when it has shelves, and closed when it has none");
    }

    // What is heavier than the limit has been refused, so that the sum is small.
    /// <summary>Of all items together, in kilograms.</summary>
    [Obsolete("use Weights")]
    public double Weight()
    {
        return _shelves.Values.SelectMany(items => items).Sum(item => item.Weight);
    }

    public async Task<int> RestockAsync(Urgency urgency)
    {
        var arrived = 0;
        foreach (var (shelf, items) in _shelves)
        {
            if (items.Count > 0)
            {
                continue;
            }
            var offers = await _supplier.OffersAsync(shelf, urgency == Urgency.High);
            switch (offers.Count)
            {
                case 0:
                    throw new InvalidOperationException($"nobody sells anything for shelf {shelf}");
                case var _ when offers[0].Weight > LimitKg:
                    Console.Error.WriteLine("too heavy to be put on any shelf of this store");
                    continue;
                default:
                    await _supplier.OrderAsync(offers[0]);
                    items.Add(offers[0]);
                    arrived++;
                    break;
            }
        }
        Console.WriteLine($"restocked {arrived} shelves of {_shelves.Count}");
        return arrived;
    }

    public void Dispose() => _shelves.Clear();
}
