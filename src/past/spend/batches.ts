/** Counts the results of each batch once, though clients may fetch them several times, in part or whole. */
import type { SpendEntry } from './entry.ts'

export class BatchesOnce {
  readonly #most = new Map<string, SpendEntry>()

  /**
   * Returns whether an entry counts as it is. An entry with results of a batch is kept: results come in the same order
   * each time, so that the one with the most results has all others.
   */
  counts(entry: SpendEntry): boolean {
    const { batch } = entry
    if (batch === undefined) return true
    const before = this.#most.get(batch.id)?.batch
    if (before === undefined || before.results < batch.results) this.#most.set(batch.id, entry)
    return false
  }

  /** The entries of batches, each once. */
  entries(): Iterable<SpendEntry> {
    return this.#most.values()
  }
}
