import { constants, createHash, type X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls'
import type { ClientTlsSettings } from '../../exchange/connection.ts'
import { ClientTrust } from './client-trust.ts'
import {
  type TicketKeyring,
  type TicketSecrets,
  ticketKey,
  ticketNameBytes,
} from './session-tickets.ts'

/** A certificate chain, leaf first, and its private key; both in PEM. */
interface CertificatePair {
  readonly certificate: Uint8Array
  readonly privateKey: Uint8Array
}

/** The authorities that a listener trusts, and no others. */
export interface TrustedClients {
  /** In PEM. */
  readonly authorities: readonly (string | Uint8Array)[]
  /** Are clients without a certificate turned away? */
  readonly required: boolean
}

export interface ListenerIdentity {
  /** Of the listener: sessions are resumed within one listener only (RFC 5246 E.1). */
  readonly key: string
  readonly pairs: readonly CertificatePair[]
  readonly clients?: TrustedClients
}

/**
 * What clients may choose from in TLS 1.2, by default: forward secrecy and authenticated encryption,
 * which is what HTTP/2 demands (RFC 9113 9.2.2). TLS 1.3 has nothing else.
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

/** Names a context by everything that sessions in it stand on, in 32 characters. */
function scopeOf(
  { key, pairs, clients }: ListenerIdentity,
  { minVersion, maxVersion, ciphers }: ClientTlsSettings,
): string {
  const digest = createHash('sha256')
  const authorities = clients?.authorities ?? []
  const parts = [
    key,
    JSON.stringify([minVersion, maxVersion, ciphers]),
    clients === undefined ? 'anybody' : clients.required ? 'required' : 'requested',
    ...authorities,
    'certificates',
    ...pairs.map(({ certificate }) => certificate),
  ]
  // A length before each part: no two lists of parts may read alike.
  for (const part of parts) digest.update(`${Buffer.byteLength(part)} `).update(part)
  return digest.digest('hex').slice(0, 32)
}

interface KeyedContext {
  readonly key: Buffer
  /** Made when first needed. */
  context: SecureContext | undefined
}

/**
 * What a listener proves itself with: one certificate for each type of key, of which the handshake
 * takes the one that the client can verify. TLS 1.2 and 1.3 (RFC 8996 retires what is older), or
 * less if a policy says so; renegotiation is refused. The client's preference among suites
 * counts, since it knows which are cheap for it, unless a policy lists them in an order of its own;
 * key exchange is OpenSSL's order, X25519 first, with ML-KEM beside it if the client supports it.
 *
 * OpenSSL takes one key for tickets in each context. So there is one context for each secret, made
 * when first needed, and the ticket in a ClientHello chooses.
 */
export class ListenerContexts {
  readonly #identity: ListenerIdentity
  readonly #settings: ClientTlsSettings
  readonly #keyring: TicketKeyring
  readonly #scope: string
  readonly #trust: ClientTrust
  #secrets: TicketSecrets
  /** By the names of the ticket keys, as latin1; the first is the one that seals. */
  #contexts = new Map<string, KeyedContext>()
  /** Used if no shared secrets were given. */
  #lonely: SecureContext | undefined

  /** Throws where OpenSSL does not take a certificate, a key or the settings. */
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

  /** For a client that shows tickets of these names (latin1), if any; never throws. */
  choose(tickets: readonly string[]): SecureContext {
    if (this.#secrets !== this.#keyring.secrets) this.#follow()
    for (const name of tickets) {
      const known = this.#contexts.get(name)
      if (known !== undefined) return this.#open(known)
    }
    for (const first of this.#contexts.values()) return this.#open(first)
    this.#lonely ??= this.#create(undefined)
    return this.#lonely
  }

  /** At the time of the call; authorities of today, since a change of them ends all sessions. */
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

  /** Takes the secrets of the keyring; contexts of secrets that stay are kept. */
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
