import { canonicalJson } from '../../base/canonical.ts'
import type { TicketKeyring } from '../../engine/tls/session-tickets.ts'
import type { TlsChoice } from '../../engine/tls/tls-choice.ts'
import { ListenerContexts, type ListenerIdentity } from '../../engine/tls/tls-context.ts'
import type { ClientTlsSettings } from '../../exchange/connection.ts'
import type { RoutePlace } from '../../exchange/exchange.ts'
import type { ListenerResource } from '../../model/resources.ts'
import type { Certificates } from './certificates.ts'

/**
 * What TLS connections of one listener get: certificates from its resource, and what handshakes may
 * agree on from policies. Made anew when either has changed, at the next handshake.
 */
export class ListenerTls {
  readonly #place: RoutePlace
  #resource: ListenerResource | undefined
  #identity: ListenerIdentity | undefined
  #tickets: TicketKeyring | undefined
  #choice: TlsChoice | undefined
  #settings: ClientTlsSettings | undefined

  constructor(place: RoutePlace) {
    this.#place = place
  }

  /**
   * Takes the certificates of a listener. Returns what is wrong with them: then those from before
   * stay in use, unless clients are to be asked for other proof than before.
   */
  renew(
    resource: ListenerResource,
    certificates: Certificates,
    settings: ClientTlsSettings | undefined,
  ): string | undefined {
    const identity = certificates.identityOf(resource)
    if (typeof identity === 'string') return this.#refused(resource, identity)
    try {
      const { tickets } = certificates
      const contexts = identity && new ListenerContexts(identity, settings ?? {}, tickets)
      this.#resource = resource
      this.#identity = identity
      this.#tickets = tickets
      this.#settings = settings
      this.#choice = this.#choose(contexts)
      return undefined
    } catch (error) {
      return this.#refused(resource, error instanceof Error ? error.message : String(error))
    }
  }

  /** Nobody gets in under rules for clients that do not hold any more. */
  #refused({ tls }: ListenerResource, problem: string): string {
    const before = this.#resource?.tls?.clients ?? null
    if (canonicalJson(tls?.clients ?? null) !== canonicalJson(before)) {
      this.#resource = undefined
      this.#choice = undefined
    }
    return problem
  }

  /** Undefined where handshakes fail: no certificate is left. */
  choice(settings: ClientTlsSettings | undefined): TlsChoice | undefined {
    const before = this.#settings
    if (settings === before || this.#resource === undefined) return this.#choice
    this.#settings = settings
    // Policies are merged anew with every change of any of them; mostly nothing has changed here.
    if (canonicalJson(settings ?? null) !== canonicalJson(before ?? null)) {
      this.#choice = this.#choose(contextsOf(this.#identity, settings, this.#tickets))
    }
    return this.#choice
  }

  #choose(contexts: ListenerContexts | undefined): TlsChoice | undefined {
    const resource = this.#resource
    if (resource === undefined) return undefined
    const passes = resource.protocol === 'TLS' && resource.tls === undefined
    if (contexts === undefined && !passes) return undefined
    const { clients } = resource.tls ?? {}
    const alpn = this.#settings?.alpn
    return {
      listener: resource.key,
      place: this.#place,
      carries: resource.protocol === 'HTTPS' ? 'http' : 'bytes',
      contexts,
      ...(alpn !== undefined && { alpn }),
      ...(clients && { clientCertificate: clients.required ? 'required' : 'requested' }),
    }
  }
}

/** Undefined where OpenSSL refuses the settings: then handshakes fail rather than ignore them. */
function contextsOf(
  identity: ListenerIdentity | undefined,
  settings: ClientTlsSettings | undefined,
  tickets: TicketKeyring | undefined,
): ListenerContexts | undefined {
  try {
    return identity && tickets && new ListenerContexts(identity, settings ?? {}, tickets)
  } catch {
    return undefined
  }
}
