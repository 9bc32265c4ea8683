/** Certificates of listeners, from the values of secrets that have been received. */
import type { SecureContext } from 'node:tls'
import type { ListenerResource, SecretRef } from '../../model/resources.ts'
import { createListenerContext } from '../engine/tls-context.ts'
import type { ReceivedSecrets } from './received-secrets.ts'

export class Certificates {
  readonly #secrets: ReceivedSecrets

  constructor(secrets: ReceivedSecrets) {
    this.#secrets = secrets
  }

  /**
   * What a listener proves itself with; undefined where it has no certificate; a message where one
   * cannot be used. Messages name Secrets, never values.
   */
  contextOf({ tls }: ListenerResource): SecureContext | string | undefined {
    const references = tls?.certificates ?? []
    if (references.length === 0) return undefined
    try {
      return createListenerContext(
        references.map(({ certificate, privateKey }) => ({
          certificate: this.#valueOf(certificate),
          privateKey: this.#valueOf(privateKey),
        })),
      )
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
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
