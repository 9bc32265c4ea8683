/**
 * Where AWS credentials come from when nobody has given any: the places that the SDKs look at, in
 * their order. The first that is configured decides; one that is configured and fails is an error,
 * because falling through would sign as somebody else.
 *
 *   environment -> shared files -> web identity -> container -> instance metadata (IMDSv2)
 */
import { containerCredentials } from './container-credentials.ts'
import { environmentCredentials } from './environment-credentials.ts'
import { instanceCredentials } from './instance-credentials.ts'
import { sharedFileCredentials } from './shared-file-credentials.ts'
import type { AwsCredentials } from './signature.ts'
import { webIdentityCredentials } from './web-identity-credentials.ts'

export interface ExpiringCredentials extends AwsCredentials {
  /** Milliseconds since the epoch; absent where they hold until told otherwise. */
  readonly expiresAt?: number
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Undefined where the place is not configured; rejects where it is and gives nothing usable. */
export type CredentialSource = (env: Environment) => Promise<ExpiringCredentials | undefined>

const sources: readonly CredentialSource[] = [
  environmentCredentials,
  sharedFileCredentials,
  webIdentityCredentials,
  containerCredentials,
  instanceCredentials,
]

/** Fetched again so long before they end; AWS renews its own five minutes before. */
const aheadMs = 300_000
/** What does not say when it ends (files may be edited) is read again after so long. */
const unlimitedMs = 300_000
/** After a failure the old credentials stand in, and nobody is asked for so long. */
const pauseMs = 10_000

/** Credentials of this process, kept and renewed before they end. */
export class CredentialChain {
  readonly #env: Environment
  readonly #now: () => number
  #current: ExpiringCredentials | undefined
  #renewAt = 0
  #pending: Promise<ExpiringCredentials> | undefined

  /** `now`: milliseconds since the epoch. */
  constructor(env: Environment = process.env, now: () => number = Date.now) {
    this.#env = env
    this.#now = now
  }

  /** At once where they are known and hold; rejects with an Error that says where was looked. */
  get(): ExpiringCredentials | Promise<ExpiringCredentials> {
    const now = this.#now()
    const current = this.#current
    const holds = current !== undefined && (current.expiresAt ?? Number.POSITIVE_INFINITY) > now
    if (holds && now < this.#renewAt) return current
    this.#pending ??= this.#fetch().finally(() => {
      this.#pending = undefined
    })
    if (!holds) return this.#pending
    // Renewed beside the request; the old ones still hold.
    this.#pending.catch(() => {})
    return current
  }

  async #fetch(): Promise<ExpiringCredentials> {
    try {
      const found = await this.#find()
      const now = this.#now()
      this.#current = found
      this.#renewAt = found.expiresAt === undefined ? now + unlimitedMs : found.expiresAt - aheadMs
      return found
    } catch (error) {
      this.#renewAt = this.#now() + pauseMs
      throw error
    }
  }

  async #find(): Promise<ExpiringCredentials> {
    for (const source of sources) {
      const found = await source(this.#env)
      if (found !== undefined) return found
    }
    throw new Error(
      'no AWS credentials: neither the environment, nor shared files, nor a web identity, nor a container, nor instance metadata has any',
    )
  }
}
