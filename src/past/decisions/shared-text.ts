import type { BlockWriter } from './block-writer.ts'
import { blockFields } from './fields.ts'

/**
 * The number of a text that decisions share. It caches the last text, because a comparison is faster than
 * a lookup, and consecutive requests often have the same text.
 */
export class SharedText {
  number = 0
  #text: string | undefined
  #block: BlockWriter | undefined
  #generation = 0

  set(block: BlockWriter, text: string | undefined): void {
    if (text === this.#text && block === this.#block && block.generation === this.#generation)
      return
    this.number = block.shared(blockFields.texts, text)
    this.#text = text
    this.#block = block
    // A text that was cut is looked up again, so that each decision that has it is marked.
    this.#generation = block.isCut ? -1 : block.generation
  }
}
