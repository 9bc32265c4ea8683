/**
 * The client's side of TLS to a backend: what is sent, and what a server must show. Requests and
 * what the control plane fetches follow the same policies, and so these rules stand once.
 */
import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import type { ConnectionOptions, SecureContext } from 'node:tls'
import type { VerifyMode } from '../model/backend-tls.ts'
import { checkNames } from './server-names.ts'

/** Which server is meant. */
interface ServerIdentity {
  /** Sent to the server (RFC 6066 3); empty where there is only an address. */
  readonly serverName: string
  /** The chain must lead to a trusted authority. */
  readonly requiresTrust: boolean
  /** Why a certificate with a good chain is not the server's; undefined where it is. */
  readonly checkName: (certificate: X509Certificate) => string | undefined
}

/** TLS to one server. */
export interface ClientTls extends ServerIdentity {
  readonly context: SecureContext
  /** Application protocols that are offered (RFC 7301). */
  readonly alpn: readonly string[]
}

interface IdentitySettings {
  readonly verify: VerifyMode
  /** Name that is sent (SNI). */
  readonly serverName?: string | undefined
  /** The certificate must have one of them; if not set, the name that is sent. */
  readonly names?: readonly string[] | undefined
}

/** `host`: what the destination is called, which TLS sends and verifies by default. */
export function serverIdentity(settings: IdentitySettings, host: string): ServerIdentity {
  const { verify, serverName = host, names = [serverName] } = settings
  return {
    // RFC 6066 3: addresses are not sent, and names end without a dot.
    serverName: isIP(serverName) === 0 ? serverName.replace(/\.$/, '') : '',
    requiresTrust: verify !== 'none',
    checkName: (certificate) => (verify === 'full' ? checkNames(certificate, names) : undefined),
  }
}

export function handshakeOptions(tls: ClientTls): ConnectionOptions {
  return {
    secureContext: tls.context,
    servername: tls.serverName,
    ALPNProtocols: [...tls.alpn],
    rejectUnauthorized: tls.requiresTrust,
    checkServerIdentity: (_host, { raw }) => {
      const problem = tls.checkName(new X509Certificate(raw))
      return problem === undefined ? undefined : new Error(problem)
    },
  }
}
