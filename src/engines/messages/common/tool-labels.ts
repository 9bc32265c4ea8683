/**
 * Converts call ids and tool names to a form that a provider accepts, and names back. Valid labels are
 * kept. Other ids, and names that are too long or not unique, get a digest of the original as a suffix,
 * so that the result is the same in every request.
 */
import { hash } from 'node:crypto'
import { bareId } from './thought-signature.ts'

/** Which call ids and names of tools a format allows. */
export interface LabelRules {
  readonly maxIdLength: number
  readonly maxNameLength: number
  /** Characters that names must not contain; all but letters, digits, `_` and `-` if omitted. */
  readonly notInNames?: RegExp
  readonly nameStart?: RegExp
}

const anyStart = /^/
const notPlain = /[^A-Za-z0-9_-]/g

const digestLength = 6

function shortened(clean: string, label: string, maxLength: number): string {
  const digest = hash('sha256', label).slice(0, digestLength)
  return `${clean.slice(0, maxLength - digestLength - 1)}_${digest}`
}

const validId = /^[A-Za-z0-9_-]+$/

/** Converts an id to letters, digits, `_` and `-` with a maximum length, without its thought signature. */
export function fittedId(id: string, maxLength: number): string {
  const bare = bareId(id)
  if (bare.length <= maxLength && validId.test(bare)) return bare
  return shortened(bare.replace(/[^A-Za-z0-9_-]/g, '_') || 'call', bare, maxLength)
}

export class ToolLabels {
  readonly #rules: LabelRules
  readonly #toProvider = new Map<string, string>()
  readonly #toClient = new Map<string, string>()
  /** By client id: the number of calls with this id, and the provider's id of the last one. */
  readonly #calls = new Map<string, { count: number; id: string }>()

  /** Converts the names of `tools` first, so that they do not depend on the conversation. */
  constructor(rules: LabelRules, tools: readonly { readonly name: string }[]) {
    this.#rules = rules
    for (const { name } of tools) this.name(name)
  }

  /** Returns the provider's name of a tool with this client name. */
  name(name: string): string {
    const known = this.#toProvider.get(name)
    if (known !== undefined) return known
    const { notInNames = notPlain, nameStart = anyStart, maxNameLength } = this.#rules
    const allowed = name.replace(notInNames, '_')
    const clean = nameStart.test(allowed) ? allowed : `_${allowed}`
    const isFree = clean !== '' && clean.length <= maxNameLength && !this.#toClient.has(clean)
    const encoded = isFree ? clean : shortened(clean, name, maxNameLength)
    this.#toProvider.set(name, encoded)
    this.#toClient.set(encoded, name)
    return encoded
  }

  /** Returns the client's name of a tool with this provider name. */
  clientName(name: string): string {
    return this.#toClient.get(name) ?? name
  }

  /** Returns the provider's id of a new call. Some providers repeat ids, but others require unique ids. */
  callId(id: string): string {
    const count = (this.#calls.get(id)?.count ?? 0) + 1
    const { maxIdLength } = this.#rules
    const fitted =
      count === 1 ? fittedId(id, maxIdLength) : fittedId(`${bareId(id)}.${count}`, maxIdLength)
    this.#calls.set(id, { count, id: fitted })
    return fitted
  }

  /** Returns the provider's id of the call that a result belongs to. */
  resultId(id: string): string {
    return this.#calls.get(id)?.id ?? fittedId(id, this.#rules.maxIdLength)
  }
}
