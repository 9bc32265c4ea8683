/** The state of a sign-in, which travels through the browser and the provider instead of being stored. */
import { Seal } from '../../../../ground/secrets/seal.ts'

export interface SignIn {
  /** Redirect URI of the client. */
  readonly redirect: string
  /** The client's own state, if it sent one. */
  readonly state?: string
  /** In milliseconds since the epoch. */
  readonly expiresAt: number
}

/** Version of the encrypted format. */
const formatVersion = 1
/** Maximum length of a sealed state. URLs with longer ones could exceed limits of servers. */
export const maxStateLength = 6_144

/** Encrypts and authenticates states with the key that all proxies share. */
export class SignInSeal {
  #current: { readonly secret: Uint8Array; readonly seal: Seal } | undefined

  /** `open` needs the same `context`. */
  seal({ redirect, state, expiresAt }: SignIn, secret: Uint8Array, context: string): string {
    const plain = JSON.stringify([formatVersion, expiresAt, redirect, state ?? null])
    return this.#sealOf(secret).seal(plain, context)
  }

  /** Returns undefined if the text is no state of this context. */
  open(text: string, secret: Uint8Array, context: string): SignIn | undefined {
    if (text.length > maxStateLength) return undefined
    // Different base64 texts can decode to the same bytes. Only the text that was made is valid.
    if (Buffer.from(text, 'base64url').toString('base64url') !== text) return undefined
    const plain = this.#sealOf(secret).open(text, context)
    if (plain === undefined) return undefined
    const [form, expiresAt, redirect, state] = JSON.parse(plain.toString()) as [
      number,
      number,
      string,
      string | null,
    ]
    if (form !== formatVersion) return undefined
    return { redirect, expiresAt, ...(state !== null && { state }) }
  }

  #sealOf(secret: Uint8Array): Seal {
    if (this.#current?.secret !== secret) {
      this.#current = { secret, seal: new Seal('sluice mcp sign-in', secret) }
    }
    return this.#current.seal
  }
}
