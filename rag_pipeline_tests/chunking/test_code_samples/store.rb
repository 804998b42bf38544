# frozen_string_literal: true

require "json"
require_relative "supplier"

# Items on shelves, and what they weigh.
module Warehouse
  LIMIT_KG = 1_000

  Item = Struct.new(:name, :weight)

  # Keeps items on numbered shelves, which are made when they are first used.
  class Store < Base
    include Enumerable

    attr_reader :name, :shelves

    # Opens the store that was saved to a file, or an empty one.
    def self.open(path)
      items = File.exist?(path) ? JSON.parse(File.read(path)) : {}
      new(File.basename(path, ".json")).tap { |store| store.shelves.merge!(items) }
    end

    def initialize(name)
      super()
      @name = name
      @shelves = Hash.new { |shelves, number| shelves[number] = [] }
    end

    # What is heavier than the limit has been refused,
    # so that the sum is small.
    def weight
      shelves.values.flatten.sum(&:weight)
    end

    def restock(supplier, urgent: false)
      arrived = 0
      shelves.each do |shelf, items|
        next unless items.empty?

        offer = supplier.offers(shelf, urgent: urgent).min_by(&:price)
        if offer.nil?
          raise ArgumentError, "nobody sells anything that fits on shelf #{shelf}"
        elsif offer.weight > LIMIT_KG
          warn "too heavy to be put on any shelf of this store: #{offer.name}"
          next
        end

        case supplier.order(offer)
        when :sent
          items << offer
          arrived += 1
        else
          warn "the order was not taken, and nobody knows why: #{offer.name}"
        end
      end
      arrived
    rescue IOError => error
      warn "the supplier cannot be reached: #{error.message}"
      arrived
    end
  end
end

RSpec.describe Warehouse::Store do
  it "weighs nothing when it is new" do
    store = Warehouse::Store.new("a store that was only just made, for this test alone")
    expect(store.weight).to eq(0)
  end
end
