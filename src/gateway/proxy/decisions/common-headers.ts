import type { BlockWriter } from '../../../past/decisions/block-writer.ts'

/** Number of different header sections that are remembered; a power of two. */
const slots = 256

/**
 * Finds the common part of a block that has the header fields of a request, because clients repeat the same fields.
 * Fields are identified by a keyed digest, which callers pass as two halves.
 */
export class CommonHeaders {
  readonly #first = new Int32Array(slots)
  readonly #second = new Int32Array(slots)
  readonly #numbers = new Int32Array(slots)
  readonly #generations = new Int32Array(slots).fill(-1)
  readonly #blocks: (BlockWriter | undefined)[] = Array.from({ length: slots })

  clear(): void {
    this.#generations.fill(-1)
  }

  /** Returns the number of the part that has the fields; 0 if the block does not have them. */
  find(block: BlockWriter, first: number, second: number): number {
    const slot = first & (slots - 1)
    const isFound =
      this.#first[slot] === first &&
      this.#second[slot] === second &&
      this.#generations[slot] === block.generation &&
      this.#blocks[slot] === block
    return isFound ? (this.#numbers[slot] ?? 0) : 0
  }

  add(block: BlockWriter, first: number, second: number, number: number): void {
    const slot = first & (slots - 1)
    this.#first[slot] = first
    this.#second[slot] = second
    this.#numbers[slot] = number
    this.#generations[slot] = block.generation
    this.#blocks[slot] = block
  }
}
