import { constants } from 'node:crypto'
import { createSecureContext, type SecureContext } from 'node:tls'
import type { ClientTlsSettings } from '../../exchange/connection.ts'

/** A certificate chain, leaf first, and its private key; both in PEM. */
export interface CertificatePair {
  readonly certificate: Uint8Array
  readonly privateKey: Uint8Array
}

/** Whom a listener believes; nobody but these authorities. */
export interface TrustedClients {
  /** In PEM. */
  readonly authorities: readonly (string | Uint8Array)[]
  /** Sessions are resumed within one listener only (RFC 5246 E.1); at most 32 characters. */
  readonly sessions: string
}

export interface ListenerIdentity {
  readonly pairs: readonly CertificatePair[]
  readonly clients?: TrustedClients
}

/**
 * What a listener proves itself with: one certificate for each type of key, of which the handshake
 * takes the one that the client can verify. TLS 1.2 and 1.3 (RFC 8996 retires what is older), or
 * less where a policy says so; renegotiation is refused. Throws where OpenSSL does not take a
 * certificate or a key.
 */
export function createListenerContext(
  { pairs, clients }: ListenerIdentity,
  { minVersion = '1.2', maxVersion = '1.3', ciphers }: ClientTlsSettings = {},
): SecureContext {
  return createSecureContext({
    ...(clients && {
      ca: clients.authorities.map((pem) => Buffer.from(pem)),
      sessionIdContext: clients.sessions,
    }),
    minVersion: `TLSv${minVersion}`,
    maxVersion: `TLSv${maxVersion}`,
    ...(ciphers && { ciphers: ciphers.join(':') }),
    honorCipherOrder: true,
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    cert: pairs.map(({ certificate }) => Buffer.from(certificate)),
    key: pairs.map(({ privateKey }) => Buffer.from(privateKey)),
  })
}
