/**
 * Ids of calls and names of tools, which come from clients and from other providers, in the form that
 * one provider takes, and the way back for names. A label that fits stays as it is. The others are
 * told apart by a digest of what they were, so that the same label becomes the same in each request.
 */
import { createHash } from 'node:crypto'
import type { ProviderFormat } from '../chat.ts'
import { bareId } from './thought-signature.ts'

interface Rules {
  /** Characters that an id may have. Azure OpenAI still takes no more than 40. */
  readonly longestId: number
  readonly longestName: number
  /** Characters that no name may have. */
  readonly notInNames: RegExp
  readonly nameStart: RegExp
}

const anyStart = /^/
const plain = { notInNames: /[^A-Za-z0-9_-]/g, nameStart: anyStart }

const rules: Readonly<Record<ProviderFormat, Rules>> = {
  completions: { longestId: 40, longestName: 64, ...plain },
  messages: { longestId: 64, longestName: 128, ...plain },
  converse: { longestId: 64, longestName: 64, ...plain },
  // It gives calls no ids that have to come back.
  'generate-content': {
    longestId: 64,
    longestName: 64,
    notInNames: /[^A-Za-z0-9_.:-]/g,
    nameStart: /^[A-Za-z_]/,
  },
}

const digestLength = 6

function shortened(clean: string, label: string, longest: number): string {
  const digest = createHash('sha256').update(label).digest('hex').slice(0, digestLength)
  return `${clean.slice(0, longest - digestLength - 1)}_${digest}`
}

const fittingId = /^[A-Za-z0-9_-]+$/

/** An id of at most so many letters, digits, `_` and `-`. */
export function fittedId(id: string, longest: number): string {
  const bare = bareId(id)
  if (bare.length <= longest && fittingId.test(bare)) return bare
  return shortened(bare.replace(/[^A-Za-z0-9_-]/g, '_') || 'call', bare, longest)
}

export class ToolLabels {
  readonly #rules: Rules
  readonly #toProvider = new Map<string, string>()
  readonly #toClient = new Map<string, string>()
  /** Ids of clients -> how often they came, and what the last call of each became. */
  readonly #calls = new Map<string, { count: number; id: string }>()

  /** Tools come first: their names stay the same, whatever the conversation calls. */
  constructor(format: ProviderFormat, tools: readonly { readonly name: string }[]) {
    this.#rules = rules[format]
    for (const { name } of tools) this.name(name)
  }

  /** The name that the provider may see. */
  name(name: string): string {
    const known = this.#toProvider.get(name)
    if (known !== undefined) return known
    const { notInNames, nameStart, longestName } = this.#rules
    const allowed = name.replace(notInNames, '_')
    const clean = nameStart.test(allowed) ? allowed : `_${allowed}`
    const isFree = clean !== '' && clean.length <= longestName && !this.#toClient.has(clean)
    const encoded = isFree ? clean : shortened(clean, name, longestName)
    this.#toProvider.set(name, encoded)
    this.#toClient.set(encoded, name)
    return encoded
  }

  /** The name that the client knows. */
  clientName(name: string): string {
    return this.#toClient.get(name) ?? name
  }

  /** The id of a call. Some providers use an id again; others want each to be there once. */
  callId(id: string): string {
    const count = (this.#calls.get(id)?.count ?? 0) + 1
    const { longestId } = this.#rules
    const fitted =
      count === 1 ? fittedId(id, longestId) : fittedId(`${bareId(id)}.${count}`, longestId)
    this.#calls.set(id, { count, id: fitted })
    return fitted
  }

  /** The id of the call that a result belongs to. */
  resultId(id: string): string {
    return this.#calls.get(id)?.id ?? fittedId(id, this.#rules.longestId)
  }
}
