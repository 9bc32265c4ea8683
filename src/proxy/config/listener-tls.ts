import type { SecureContext } from 'node:tls'
import type { ClientTlsSettings } from '../../exchange/connection.ts'
import type { RoutePlace } from '../../exchange/exchange.ts'
import type { ListenerResource } from '../../model/resources.ts'
import { createListenerContext, type ListenerIdentity } from '../engine/tls-context.ts'
import type { TlsChoice } from '../engine/types.ts'
import type { Certificates } from './certificates.ts'

/**
 * What TLS connections of one listener get: certificates from its resource, and what handshakes may
 * agree on from policies. Made anew when either has changed, at the next handshake.
 */
export class ListenerTls {
  readonly #place: RoutePlace
  #resource: ListenerResource | undefined
  #identity: ListenerIdentity | undefined
  #choice: TlsChoice | undefined
  #settings: ClientTlsSettings | undefined

  constructor(place: RoutePlace) {
    this.#place = place
  }

  /**
   * Takes the certificates of a listener. Returns what is wrong with them: then those from before
   * stay in use.
   */
  renew(
    resource: ListenerResource,
    certificates: Certificates,
    settings: ClientTlsSettings | undefined,
  ): string | undefined {
    const identity = certificates.identityOf(resource)
    if (typeof identity === 'string') return identity
    try {
      const context = identity && createListenerContext(identity, settings)
      this.#resource = resource
      this.#identity = identity
      this.#settings = settings
      this.#choice = this.#choose(context)
      return undefined
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  }

  /** Undefined where handshakes fail: no certificate is left. */
  choice(settings: ClientTlsSettings | undefined): TlsChoice | undefined {
    if (settings !== this.#settings && this.#resource !== undefined) {
      this.#settings = settings
      this.#choice = this.#choose(contextOf(this.#identity, settings))
    }
    return this.#choice
  }

  #choose(context: SecureContext | undefined): TlsChoice | undefined {
    const resource = this.#resource
    if (resource === undefined) return undefined
    const passes = resource.protocol === 'TLS' && resource.tls === undefined
    if (context === undefined && !passes) return undefined
    const { clients } = resource.tls ?? {}
    const alpn = this.#settings?.alpn
    return {
      listener: resource.key,
      place: this.#place,
      carries: resource.protocol === 'HTTPS' ? 'http' : 'bytes',
      context,
      ...(alpn !== undefined && { alpn }),
      ...(clients && { clientCertificate: clients.required ? 'required' : 'requested' }),
    }
  }
}

/** Undefined where OpenSSL refuses the settings: then handshakes fail rather than ignore them. */
function contextOf(
  identity: ListenerIdentity | undefined,
  settings: ClientTlsSettings | undefined,
): SecureContext | undefined {
  try {
    return identity && createListenerContext(identity, settings)
  } catch {
    return undefined
  }
}
