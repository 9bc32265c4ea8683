import { constants, createHash, type X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls'
import type { ClientTlsSettings } from '../../../ground/exchange/connection.ts'
import { ClientTrust } from './client-trust.ts'
import {
  type TicketKeyring,
  type TicketSecrets,
  ticketKey,
  ticketNameBytes,
} from './session-tickets.ts'

/** A certificate chain, leaf first, and its private key, both in PEM. */
interface CertificatePair {
  readonly certificate: Uint8Array
  readonly privateKey: Uint8Array
}

/** How a listener verifies clients: it trusts only these authorities. */
export interface TrustedClients {
  /** Certificates in PEM. */
  readonly authorities: readonly (string | Uint8Array)[]
  /** Whether clients without a certificate are refused. */
  readonly required: boolean
}

export interface ListenerIdentity {
  /** Identifies the listener. Sessions are resumed only within one listener (RFC 5246 E.1). */
  readonly key: string
  readonly pairs: readonly CertificatePair[]
  readonly clients?: TrustedClients
}

/**
 * The default suites: those of TLS 1.3, and those of TLS 1.2 with forward secrecy and authenticated
 * encryption, as HTTP/2 demands (RFC 9113 9.2.2).
 */
const defaultCiphers = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
]

/** Identifies a context in 32 characters by everything that its sessions depend on. */
function scopeOf(
  { key, pairs, clients }: ListenerIdentity,
  { minVersion, maxVersion, ciphers }: ClientTlsSettings,
): string {
  const digest = createHash('sha256')
  const authorities = clients?.authorities ?? []
  const parts = [
    key,
    JSON.stringify([minVersion, maxVersion, ciphers]),
    clients === undefined ? 'none' : clients.required ? 'required' : 'requested',
    ...authorities,
    'certificates',
    ...pairs.map(({ certificate }) => certificate),
  ]
  // The length of each part is included, so that different lists of parts never give the same digest.
  for (const part of parts) digest.update(`${Buffer.byteLength(part)} `).update(part)
  return digest.digest('hex').slice(0, 32)
}

interface KeyedContext {
  readonly key: Buffer
  /** Created when first needed. */
  context: SecureContext | undefined
}

/**
 * The TLS contexts of a listener. They have one certificate for each type of key, and the handshake
 * selects one that the client can verify. TLS 1.2 and 1.3 are offered (RFC 8996 retires older
 * versions), or fewer if a policy says so; renegotiation is refused. The client chooses the suite, since
 * it knows which are cheap for it, unless a policy orders them; key exchange follows OpenSSL's order:
 * X25519 first, with ML-KEM in addition if the client supports it.
 *
 * OpenSSL accepts one ticket key per context, so there is one context for each secret, created when
 * first needed. The ticket in a ClientHello selects the context.
 */
export class ListenerContexts {
  readonly #identity: ListenerIdentity
  readonly #settings: ClientTlsSettings
  readonly #keyring: TicketKeyring
  readonly #scope: string
  readonly #trust: ClientTrust
  #secrets: TicketSecrets
  /** Contexts by the names of their ticket keys (latin1); the first one seals. */
  #contexts = new Map<string, KeyedContext>()
  /** The context that is used if there are no shared secrets. */
  #unsharedContext: SecureContext | undefined

  /** Throws if OpenSSL rejects a certificate, a key or the settings. */
  constructor(identity: ListenerIdentity, settings: ClientTlsSettings, keyring: TicketKeyring) {
    this.#identity = identity
    this.#settings = settings
    this.#keyring = keyring
    this.#scope = scopeOf(identity, settings)
    this.#trust = new ClientTrust(identity.clients?.authorities ?? [])
    this.#secrets = keyring.secrets
    this.#follow()
    this.choose([])
  }

  /** Returns the context for a client with tickets of these key names (latin1), if any. Never throws. */
  choose(tickets: readonly string[]): SecureContext {
    if (this.#secrets !== this.#keyring.secrets) this.#follow()
    for (const name of tickets) {
      const known = this.#contexts.get(name)
      if (known !== undefined) return this.#open(known)
    }
    for (const first of this.#contexts.values()) return this.#open(first)
    this.#unsharedContext ??= this.#create(undefined)
    return this.#unsharedContext
  }

  /** Checks only the current time, because a change of the authorities ends all sessions. */
  stillHolds(certificate: X509Certificate): boolean {
    return this.#trust.stillHolds(certificate, Date.now())
  }

  #create(ticketKeys: Buffer | undefined): SecureContext {
    const { lifetimeSeconds } = this.#keyring
    return createContext(this.#identity, this.#settings, {
      sessionIdContext: this.#scope,
      sessionTimeout: lifetimeSeconds,
      ...(ticketKeys && { ticketKeys }),
    })
  }

  #open(slot: KeyedContext): SecureContext {
    slot.context ??= this.#create(slot.key)
    return slot.context
  }

  /** Updates the contexts to the secrets of the keyring; contexts of secrets that remain are kept. */
  #follow(): void {
    const before = this.#contexts
    this.#secrets = this.#keyring.secrets
    this.#contexts = new Map()
    for (const secret of this.#secrets) {
      const key = ticketKey(secret, this.#scope)
      const name = key.toString('latin1', 0, ticketNameBytes)
      this.#contexts.set(name, before.get(name) ?? { key, context: undefined })
    }
  }
}

function createContext(
  { pairs, clients }: ListenerIdentity,
  { minVersion = '1.2', maxVersion = '1.3', ciphers }: ClientTlsSettings,
  sessions: SecureContextOptions,
): SecureContext {
  return createSecureContext({
    ...(clients && { ca: clients.authorities.map((pem) => Buffer.from(pem)) }),
    ...sessions,
    minVersion: `TLSv${minVersion}`,
    maxVersion: `TLSv${maxVersion}`,
    ciphers: (ciphers ?? defaultCiphers).join(':'),
    honorCipherOrder: ciphers !== undefined,
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    cert: pairs.map(({ certificate }) => Buffer.from(certificate)),
    key: pairs.map(({ privateKey }) => Buffer.from(privateKey)),
  })
}
