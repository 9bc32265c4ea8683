/** Certificates of listeners, from the values of secrets that have been received. */

import { TicketKeyring } from '../../engine/tls/session-tickets.ts'
import type { ListenerIdentity, TrustedClients } from '../../engine/tls/tls-context.ts'
import type { ClientValidation, ListenerResource, SecretRef } from '../../model/resources.ts'
import type { ReceivedSecrets } from './received-secrets.ts'

export class Certificates {
  readonly #secrets: ReceivedSecrets
  /** Of the sessions that listeners take up again. */
  readonly tickets: TicketKeyring

  constructor(secrets: ReceivedSecrets, tickets = new TicketKeyring()) {
    this.#secrets = secrets
    this.tickets = tickets
  }

  /**
   * What a listener proves itself with; undefined where it has no certificate; a message where one
   * cannot be used. Messages name Secrets, never values.
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
