import { CelView } from '../cel/index.ts'
import type { Exchange } from '../exchange/exchange.ts'

/** Whatever points at the exchange that is looked at now. */
export interface Pointer {
  readonly exchange: Exchange | undefined
}

/** A variable whose fields are read off the exchange when an expression asks for them. */
export abstract class ExchangeView extends CelView {
  readonly #pointer: Pointer
  readonly #names: readonly string[]

  constructor(pointer: Pointer, names: readonly string[]) {
    super()
    this.#pointer = pointer
    this.#names = names
  }

  protected get exchange(): Exchange | undefined {
    return this.#pointer.exchange
  }

  override fieldNames(): readonly string[] {
    return this.#names.filter((name) => this.hasField(name))
  }
}
