import { TicketKeyring } from '../../../engines/http/tls/session-tickets.ts'
import type { TlsChoice } from '../../../engines/http/tls/tls-choice.ts'
import {
  ListenerContexts,
  type ListenerIdentity,
  type TrustedClients,
} from '../../../engines/http/tls/tls-context.ts'
import { canonicalJson } from '../../../ground/base/canonical.ts'
import type { ClientTlsSettings } from '../../../ground/exchange/connection.ts'
import type { RoutePlace } from '../../../ground/exchange/exchange.ts'
import type {
  ClientValidation,
  ListenerResource,
  SecretRef,
} from '../../../ground/model/resources.ts'
import type { ReceivedSecrets } from './received-secrets.ts'

/** Certificates of listeners, from received secrets. */
export class Certificates {
  readonly #secrets: ReceivedSecrets
  readonly tickets: TicketKeyring

  constructor(secrets: ReceivedSecrets, tickets = new TicketKeyring()) {
    this.#secrets = secrets
    this.tickets = tickets
  }

  /**
   * Returns the certificates of a listener; undefined if it has none, or a text that says why they are
   * unusable.
   */
  identityOf({ key, tls }: ListenerResource): ListenerIdentity | string | undefined {
    const references = tls?.certificates ?? []
    if (references.length === 0) return undefined
    try {
      return {
        key,
        pairs: references.map(({ certificate, privateKey }) => ({
          certificate: this.#valueOf(certificate),
          privateKey: this.#valueOf(privateKey),
        })),
        ...(tls?.clients && { clients: this.#trusted(tls.clients) }),
      }
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  }

  #trusted({ authorities, required }: ClientValidation): TrustedClients {
    return {
      authorities: authorities.map((authority) =>
        'pem' in authority ? authority.pem : this.#valueOf(authority.secret),
      ),
      required,
    }
  }

  #valueOf({ namespace, name, key, digest }: SecretRef): Uint8Array {
    const value = this.#secrets.find(digest)
    if (value === undefined) {
      throw new Error(`the value of ${key} of Secret ${namespace}/${name} is not known`)
    }
    return value
  }
}

/**
 * The TLS settings of one listener: certificates from its resource, and handshake settings from policies.
 * After a change of either, the settings are made again at the next handshake.
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
   * Sets the certificates of a listener. If they are unusable, returns the reason. The previous certificates
   * then stay in use, unless the validation of client certificates has changed.
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

  /**
   * Drops the previous settings if they validate client certificates by outdated rules. Returns `problem`.
   */
  #refused({ tls }: ListenerResource, problem: string): string {
    const before = this.#resource?.tls?.clients ?? null
    if (canonicalJson(tls?.clients ?? null) !== canonicalJson(before)) {
      this.#resource = undefined
      this.#choice = undefined
    }
    return problem
  }

  /** Returns the settings for a handshake; undefined if it must fail because there is no certificate. */
  choice(settings: ClientTlsSettings | undefined): TlsChoice | undefined {
    const before = this.#settings
    if (settings === before || this.#resource === undefined) return this.#choice
    this.#settings = settings
    // Every policy change creates a new object, which is mostly equal to the previous one.
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

/** Makes the TLS contexts. Returns undefined if OpenSSL refuses the settings, so that handshakes fail. */
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
