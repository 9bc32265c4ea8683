import type {
  Body,
  BodyTransform,
  BodyWatcher,
  BufferedBody,
} from '../../ground/exchange/exchange.ts'
import { MemoryBody } from '../../ground/exchange/memory-message.ts'
import type { Unknowns } from './unknowns.ts'

const reason = 'the body of the request is not recorded'
const unknownBody: BufferedBody = { complete: false, prefix: new Uint8Array() }

/** The body of a simulated request, which is unknown in records. */
export class SimulatedBody implements Body {
  readonly trailers = ''
  readonly #unknowns: Unknowns
  #content: MemoryBody | undefined

  constructor(unknowns: Unknowns) {
    this.#unknowns = unknowns
  }

  /** Sets the bytes; undefined if they are unknown. */
  load(bytes: Uint8Array | undefined): void {
    this.#content = bytes && new MemoryBody(bytes)
  }

  get isKnown(): boolean {
    return this.#content !== undefined
  }

  get length(): number | undefined {
    return this.#content === undefined ? this.#unknowns.read(reason) : this.#content.length
  }

  get known(): BufferedBody | undefined {
    return this.#content === undefined ? this.#unknowns.read(reason) : this.#content.known
  }

  async buffer(maxBytes: number): Promise<BufferedBody> {
    return this.read(maxBytes)
  }

  read(maxBytes: number, watcher?: BodyWatcher): BufferedBody {
    if (this.#content !== undefined) return this.#content.read(maxBytes, watcher)
    this.#unknowns.read(reason)
    return unknownBody
  }

  replace(bytes: Uint8Array): void {
    this.load(bytes)
  }

  through(transform: BodyTransform): void {
    this.#content?.through(transform)
  }

  record(): void {
    // Nothing to do: the body is in memory, or unknown.
  }
}
