/**
 * Converts call ids and tool names to a form that a provider accepts, and names back. Valid labels are
 * kept. Other ids, and names that are too long or not unique, get a digest of the original as a suffix,
 * so that the result is the same in every request.
 */
import { hash } from 'node:crypto'
import type { ProviderFormat } from '../chat.ts'
import { bareId } from './thought-signature.ts'

interface Rules {
  /** Maximum length of an id. Azure OpenAI still accepts no more than 40 characters. */
  readonly maxIdLength: number
  readonly maxNameLength: number
  /** Characters that names must not contain. */
  readonly notInNames: RegExp
  readonly nameStart: RegExp
}

const anyStart = /^/
const plain = { notInNames: /[^A-Za-z0-9_-]/g, nameStart: anyStart }

const rules: Readonly<Record<ProviderFormat, Rules>> = {
  completions: { maxIdLength: 40, maxNameLength: 64, ...plain },
  messages: { maxIdLength: 64, maxNameLength: 128, ...plain },
  converse: { maxIdLength: 64, maxNameLength: 64, ...plain },
  // Requests in this format contain no call ids.
  'generate-content': {
    maxIdLength: 64,
    maxNameLength: 64,
    notInNames: /[^A-Za-z0-9_.:-]/g,
    nameStart: /^[A-Za-z_]/,
  },
}

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
  readonly #rules: Rules
  readonly #toProvider = new Map<string, string>()
  readonly #toClient = new Map<string, string>()
  /** By client id: the number of calls with this id, and the provider's id of the last one. */
  readonly #calls = new Map<string, { count: number; id: string }>()

  /** Converts the names of `tools` first, so that they do not depend on the conversation. */
  constructor(format: ProviderFormat, tools: readonly { readonly name: string }[]) {
    this.#rules = rules[format]
    for (const { name } of tools) this.name(name)
  }

  /** Returns the provider's name of a tool with this client name. */
  name(name: string): string {
    const known = this.#toProvider.get(name)
    if (known !== undefined) return known
    const { notInNames, nameStart, maxNameLength } = this.#rules
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
