import type { BlockWriter } from './block-writer.ts'
import { blockFields } from './fields.ts'

/** Number of different sets of numbers that are remembered; a power of two. */
const slots = 256

/** A common part of a block. */
interface Part {
  readonly values: number[]
  number: number
  block: BlockWriter | undefined
  generation: number
}

/**
 * Numbers that decisions about the same route with the same result often have in common. They form a common part, which
 * is written only if the block does not have it yet. Every decision must put the same fields in the same order.
 */
export class CommonFields {
  /** The number of the part that has the fields. */
  number = 0
  readonly #fields: number[] = []
  readonly #values: number[] = []
  readonly #parts: Part[] = Array.from({ length: slots }, () => {
    return { values: [], number: 0, block: undefined, generation: 0 }
  })
  #count = 0
  #hash = 0

  /** Sets an integer that is not negative. */
  put(field: number, value: number): void {
    const at = this.#count++
    this.#fields[at] = field
    this.#values[at] = value
    this.#hash = Math.imul(this.#hash ^ value, 0x9e37_79b1)
  }

  /** Writes the part unless the block has it. Called before the decision begins. */
  prepare(block: BlockWriter): void {
    const part = this.#parts[this.#hash >>> 24] as Part
    if (!this.#isIn(part, block)) this.#write(part, block)
    this.number = part.number
    this.#count = 0
    this.#hash = 0
  }

  #isIn({ values, block, generation }: Part, wanted: BlockWriter): boolean {
    if (block !== wanted || generation !== wanted.generation) return false
    for (let at = 0; at < this.#count; at++) if (values[at] !== this.#values[at]) return false
    return true
  }

  #write(part: Part, block: BlockWriter): void {
    const start = block.begin(blockFields.commons)
    for (let at = 0; at < this.#count; at++) {
      const value = this.#values[at] ?? 0
      block.uint(this.#fields[at] ?? 0, value)
      part.values[at] = value
    }
    block.end(start)
    part.number = block.addCommon()
    part.block = block
    part.generation = block.generation
  }
}
