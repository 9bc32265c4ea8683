/**
 * Names of tools for a provider that allows `[A-Za-z0-9_-]{1,64}` only, and the way back. Two names
 * that become one are told apart by a digest.
 */
import { createHash } from 'node:crypto'

const maxLength = 64
const digestLength = 6

function shortened(clean: string, name: string): string {
  const digest = createHash('sha256').update(name).digest('hex').slice(0, digestLength)
  return `${clean.slice(0, maxLength - digestLength - 1)}_${digest}`
}

export class ToolNames {
  readonly #toProvider = new Map<string, string>()
  readonly #toClient = new Map<string, string>()

  /** The name that the provider may see. */
  encode(name: string): string {
    const known = this.#toProvider.get(name)
    if (known !== undefined) return known
    const clean = name.replace(/[^A-Za-z0-9_-]/g, '_')
    const isFree = clean !== '' && clean.length <= maxLength && !this.#toClient.has(clean)
    const encoded = isFree ? clean : shortened(clean, name)
    this.#toProvider.set(name, encoded)
    this.#toClient.set(encoded, name)
    return encoded
  }

  /** The name that the client knows. */
  decode(name: string): string {
    return this.#toClient.get(name) ?? name
  }
}
