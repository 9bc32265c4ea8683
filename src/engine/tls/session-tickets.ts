/**
 * Session tickets (RFC 5077, RFC 8446 4.6.1) that every worker of a proxy understands. The main
 * thread makes secrets and hands them out; each context derives a key of its own from a secret:
 *
 *   secret (32 random bytes) + scope of the context --HKDF-SHA-256--> name 16 | HMAC 16 | AES 16
 *
 * The scope is a digest of everything that a handshake there stands on: listener, certificates,
 * whom clients must convince, versions and suites. A ticket of another scope has another name, so
 * that it is not even looked at, and the handshake is a full one.
 *
 * The first secret seals, all of them open: a ticket stays good for its lifetime when the secrets
 * change. A connection that took up a session gets no new tickets, so that a client proves itself
 * anew after one lifetime at the latest.
 */
import { hkdfSync, randomBytes } from 'node:crypto'

/** How long a secret seals and a ticket is good for, in seconds, unless configured otherwise. */
const defaultLifetimeSeconds = 3_600

const secretBytes = 32
/** The one that seals, and the one before it. */
const keptSecrets = 2
/** A ticket begins with the name of its key. */
export const ticketNameBytes = 16
const keyBytes = 48

/** From which the keys of tickets are derived; the first one seals. Never logged, never stored. */
export type TicketSecrets = readonly Uint8Array[]

/** A new secret in front of those before; the oldest goes. */
export function rotate(secrets: TicketSecrets): TicketSecrets {
  return [randomBytes(secretBytes), ...secrets].slice(0, keptSecrets)
}

/** 48 bytes for OpenSSL: name, HMAC key and AES key. */
export function ticketKey(secret: Uint8Array, scope: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', `sluice session tickets ${scope}`, keyBytes))
}

/** The secrets of one worker; contexts look here at each handshake. */
export class TicketKeyring {
  /** Without any, each context seals with a key of its own. */
  secrets: TicketSecrets
  /** How long a ticket is good for (RFC 8446 4.6.1: a week at most). */
  readonly lifetimeSeconds: number

  constructor(secrets: TicketSecrets = [], lifetimeSeconds: number = defaultLifetimeSeconds) {
    this.secrets = secrets
    this.lifetimeSeconds = lifetimeSeconds
  }
}

/** Makes the secrets of a process, and new ones for as long as it runs. */
export class TicketRotation {
  secrets: TicketSecrets = rotate([])
  readonly #timer: NodeJS.Timeout
  readonly #tell: (secrets: TicketSecrets) => void

  /** `tell` is called for each change. */
  constructor(tell: (secrets: TicketSecrets) => void, lifetimeSeconds = defaultLifetimeSeconds) {
    this.#tell = tell
    this.#timer = setInterval(() => this.rotate(), lifetimeSeconds * 1_000).unref()
  }

  /** Takes a new secret at once: tickets live on that are sealed with the one before, no others. */
  rotate(): void {
    this.secrets = rotate(this.secrets)
    this.#tell(this.secrets)
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
