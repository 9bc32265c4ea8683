/**
 * Parts of derivations. A part whose inputs have the same content as the last time is not derived again, unless
 * something that the derivation has read has changed since.
 */
import { exactList } from '../../ground/base/exact-list.ts'
import { hasSameContent } from './same-content.ts'
import type { SourceReader, Sources } from './sources.ts'

interface Part {
  readonly derive: unknown
  inputs: readonly unknown[]
  readonly result: unknown
  /** The reads of the part among those of the derivation: from this position up to, without, `to`. */
  from: number
  to: number
}

const unknownPart: Part = { derive: undefined, inputs: [], result: undefined, from: 0, to: 0 }

/** What has parts; `PartStore` writes them, in their order. They are dropped once a source has changed. */
export interface PartOwner extends SourceReader {
  parts: readonly Part[]
}

export class PartStore<Owner extends PartOwner> {
  readonly #sources: Sources<Owner>
  /** Parts of the previous derivation of the owner. The first `#count` of them were replaced by newer ones. */
  readonly #parts: Part[] = []
  #count = 0
  /** Whether a part is being derived. */
  isRunning = false

  constructor(sources: Sources<Owner>) {
    this.#sources = sources
  }

  /** Begins a derivation. Only one runs at a time. */
  begin({ parts }: Owner): void {
    this.#parts.length = 0
    for (const part of parts) this.#parts.push(part)
    this.#count = 0
    this.isRunning = false
  }

  /** Ends the derivation, and stores its parts. */
  end(owner: Owner): void {
    this.#parts.length = this.#count
    owner.parts = hasSameItems(owner.parts, this.#parts) ? owner.parts : exactList(this.#parts)
  }

  /**
   * Returns the result of the part that comes next: the last one if the part at this position had the same
   * `derive` and inputs with the same content, otherwise what `derive` returns.
   */
  next<Context, Inputs extends readonly unknown[], Result>(
    derive: (context: Context, ...inputs: Inputs) => Result,
    inputs: Inputs,
    context: Context,
  ): Result {
    const position = this.#count++
    const before = this.#parts[position]
    const from = this.#sources.count
    if (before?.derive === derive && haveSameContent(before.inputs, inputs)) {
      this.#sources.repeat(before.from, before.to)
      // Keeps the newer inputs, which the object has as well.
      before.inputs = inputs
      before.from = from
      before.to = this.#sources.count
      return before.result as Result
    }
    // What was stored is out of date, even if the part throws.
    this.#parts[position] = unknownPart
    this.isRunning = true
    const result = derive(context, ...inputs)
    this.isRunning = false
    this.#parts[position] = { derive, inputs, result, from, to: this.#sources.count }
    return result
  }
}

function hasSameItems<Item>(a: readonly Item[], b: readonly Item[]): boolean {
  return a.length === b.length && a.every((item, at) => item === b[at])
}

function haveSameContent(before: readonly unknown[], after: readonly unknown[]): boolean {
  for (let at = 0; at < after.length; at++) {
    if (!hasSameContent(before[at], after[at])) return false
  }
  return before.length === after.length
}
