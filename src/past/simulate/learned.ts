import { Learned } from '../../ground/exchange/learned.ts'
import type { Unknowns } from './unknowns.ts'

export type LearnedField =
  | 'jwt'
  | 'jwtToken'
  | 'apiKey'
  | 'apiKeyToken'
  | 'apiKeySource'
  | 'basicAuth'
  | 'extauthz'
  | 'authorizedCaller'
  | 'extproc'
  | 'ownIdentity'

const fields: readonly LearnedField[] = [
  'jwt',
  'jwtToken',
  'apiKey',
  'apiKeyToken',
  'apiKeySource',
  'basicAuth',
  'extauthz',
  'authorizedCaller',
  'extproc',
  'ownIdentity',
]

/** What policies have learned about the request. Values of steps that did not run are unknown. */
export class SimulatedLearned extends Learned {
  readonly #values = new Map<LearnedField, unknown>()
  readonly #unknown = new Map<LearnedField, string>()
  readonly #unknowns: Unknowns

  constructor(unknowns: Unknowns) {
    super()
    this.#unknowns = unknowns
    // The fields of the base class are properties of each object, so they are replaced on the object.
    for (const field of fields) {
      Object.defineProperty(this, field, {
        get: () => this.#read(field),
        set: (value: unknown) => this.#write(field, value),
      })
    }
  }

  #read(field: LearnedField): unknown {
    if (this.#unknown.size > 0) {
      const reason = this.#unknown.get(field)
      if (reason !== undefined) this.#unknowns.read(reason)
    }
    return this.#values.get(field)
  }

  #write(field: LearnedField, value: unknown): void {
    this.#unknown.delete(field)
    this.#values.set(field, value)
  }

  /** Marks a value as unknown, because the step that may set it did not run. */
  doubt(field: LearnedField, reason: string): void {
    this.#unknown.set(field, reason)
  }

  /** Removes all values, for the next request. */
  reset(): void {
    if (this.#values.size > 0) this.#values.clear()
    if (this.#unknown.size > 0) this.#unknown.clear()
    this.llm = undefined
    this.llmRequest = undefined
    this.describeMcp(undefined)
  }
}
