/**
 * The keys that seal cookies. A sealed text begins with the id of its key, so that several keys can be in use while
 * they are rotated: the first one seals, and all of them open.
 */
import { sha256 } from '../../ground/base/digest.ts'
import type { SecretValues } from '../../ground/exchange/exchange.ts'
import type { PolicyHost } from '../../ground/exchange/rate-limits.ts'
import { Seal } from '../../ground/secrets/seal.ts'

interface NamedSeal {
  readonly id: string
  readonly seal: Seal
}

/** Minimum length of a key in bytes. */
const minKeyLength = 32
/** Length of the id of a key in characters. */
const idLength = 6

export class Keyring {
  readonly #seals: readonly [NamedSeal, ...NamedSeal[]]

  constructor([first, ...others]: readonly [Uint8Array, ...Uint8Array[]]) {
    this.#seals = [namedSeal(first), ...others.map(namedSeal)]
  }

  /** Returns text of the characters A-Z, a-z, 0-9, `-`, `_` and `.`. `open` needs the same context. */
  seal(plain: Uint8Array | string, context: string): string {
    const [{ id, seal }] = this.#seals
    return `${id}.${seal.seal(plain, context)}`
  }

  /** Returns undefined if the text was not sealed with one of the keys for this context. */
  open(text: string, context: string): Buffer | undefined {
    if (text[idLength] !== '.') return undefined
    const id = text.slice(0, idLength)
    const sealed = text.slice(idLength + 1)
    for (const one of this.#seals) {
      const plain = one.id === id ? one.seal.open(sealed, context) : undefined
      if (plain !== undefined) return plain
    }
    return undefined
  }
}

function namedSeal(key: Uint8Array): NamedSeal {
  const id = Buffer.from(sha256(Buffer.concat([Buffer.from('id of '), key])))
  return { id: id.toString('base64url').slice(0, idLength), seal: new Seal('sluice sign-in', key) }
}

/**
 * Returns the keys with these digests, or else that of the gateway. It is a function, because the key of the gateway may arrive later than the policy, and may change.
 * Throws if a key is too short.
 */
export function keyringOf(
  keys: readonly string[],
  secrets: SecretValues,
  { sessionKey }: Pick<PolicyHost, 'sessionKey'>,
): () => Keyring | undefined {
  const [first, ...others] = keys.map((digest) => secrets.value(digest))
  if (first !== undefined) {
    const own = [first, ...others] as const
    if (own.some(({ length }) => length < minKeyLength)) {
      throw new Error(`a key that seals has less than ${minKeyLength} bytes`)
    }
    const keyring = new Keyring(own)
    return () => keyring
  }
  let current: { readonly key: Uint8Array; readonly keyring: Keyring } | undefined
  return (): Keyring | undefined => {
    const key = sessionKey?.()
    if (key === undefined) return undefined
    if (current?.key !== key) current = { key, keyring: new Keyring([key]) }
    return current.keyring
  }
}
