/**
 * Session tickets (RFC 5077, RFC 8446 4.6.1) that every worker of a proxy accepts. The main thread
 * makes secrets and distributes them; each context derives a key of its own from a secret:
 *
 *   secret (32 random bytes) + scope of the context --HKDF-SHA-256--> name 16 | HMAC 16 | AES 16
 *
 * The scope is a digest of everything that a handshake depends on: listener, certificates, client
 * authorities, versions and suites. A ticket of another scope has another name, so that it is ignored
 * and the handshake is a full one.
 *
 * The first secret seals tickets, and every secret opens them, so that a ticket stays valid for its
 * lifetime when the secrets change. A connection that resumed a session gets no new tickets, so that
 * a client must prove its identity again after one lifetime at the latest.
 */
import { hkdfSync, randomBytes } from 'node:crypto'

/** Default time in seconds for which a secret seals, and for which a ticket is valid. */
const defaultLifetimeSeconds = 3_600

const secretBytes = 32
/** Number of secrets that are kept: the one that seals, and the one before it. */
const keptSecrets = 2
/** Length of the key name with which a ticket begins. */
export const ticketNameBytes = 16
const keyBytes = 48

/** The secrets from which ticket keys are derived; the first one seals. Never logged or stored. */
export type TicketSecrets = readonly Uint8Array[]

/** Returns the secrets with a new one in front; drops the oldest. */
export function rotate(secrets: TicketSecrets): TicketSecrets {
  return [randomBytes(secretBytes), ...secrets].slice(0, keptSecrets)
}

/** Derives the 48 bytes of a ticket key for OpenSSL: name, HMAC key and AES key. */
export function ticketKey(secret: Uint8Array, scope: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', `sluice session tickets ${scope}`, keyBytes))
}

/** The secrets of one worker, which contexts read at each handshake. */
export class TicketKeyring {
  /** If there are no secrets, each context seals with a key of its own. */
  secrets: TicketSecrets
  /** How long a ticket is valid, at most a week (RFC 8446 4.6.1). */
  readonly lifetimeSeconds: number

  constructor(secrets: TicketSecrets = [], lifetimeSeconds: number = defaultLifetimeSeconds) {
    this.secrets = secrets
    this.lifetimeSeconds = lifetimeSeconds
  }
}

/** Creates the secrets of a process, and replaces them regularly. */
export class TicketRotation {
  secrets: TicketSecrets = rotate([])
  readonly #timer: NodeJS.Timeout
  readonly #onChange: (secrets: TicketSecrets) => void

  /** `onChange` is called with the new secrets after each change. */
  constructor(
    onChange: (secrets: TicketSecrets) => void,
    lifetimeSeconds = defaultLifetimeSeconds,
  ) {
    this.#onChange = onChange
    this.#timer = setInterval(() => this.rotate(), lifetimeSeconds * 1_000).unref()
  }

  /** Creates a new secret at once. Of all tickets, those that the previous secret sealed stay valid. */
  rotate(): void {
    this.secrets = rotate(this.secrets)
    this.#onChange(this.secrets)
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
