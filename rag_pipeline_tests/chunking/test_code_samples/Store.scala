// Items on shelves, and what they weigh.
package example.store

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}

/** A thing that is kept, with its weight in kilograms and the name that people know it by. */
case class Item(name: String, weight: Double)

trait Supplier {
  def offers(shelf: Int, urgent: Boolean): Future[Seq[Item]]
  def order(item: Item): Future[Unit]
}

/** Keeps items on numbered shelves, which are made when they are first used. */
class Store(supplier: Supplier)(implicit ec: ExecutionContext) extends AutoCloseable {
  private val shelves = mutable.TreeMap.empty[Int, mutable.Buffer[Item]]
  var opened: Boolean = false

  // What is heavier than the limit has been refused, so that the sum is small.
  @deprecated("use weights", "2.0")
  def weight: Double = {
    shelves.values.flatten.map(_.weight).sum
  }

  def restock(urgent: Boolean): Future[Int] = {
    val missing = shelves.filter { case (_, items) => items.isEmpty }
    val orders = for ((shelf, items) <- missing) yield {
      supplier.offers(shelf, urgent).flatMap { offers =>
        offers.headOption match {
          case None =>
            Future.failed(new NoSuchElementException(s"nobody sells anything that fits on shelf $shelf"))
          case Some(item) if item.weight > Store.LimitKg =>
            println("too heavy to be put on any shelf of this store")
            Future.successful(0)
          case Some(item) =>
            supplier.order(item).map { _ =>
              items += item
              1
            }
        }
      }
    }
    if (orders.isEmpty) {
      Future.successful(0)
    } else {
      Future.sequence(orders.toSeq).map(_.sum)
    }
  }

  override def close(): Unit = shelves.clear()
}

object Store {
  val LimitKg = 1000.0

  def inventory(shelves: Map[Int, Seq[Item]]): Seq[String] = {
    shelves.toSeq.map { case (number, items) => s"$number: ${items.size} items, the first ${items.headOption}" }
  }
}
