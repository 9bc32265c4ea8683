import type { SecretValues } from '../../../ground/exchange/exchange.ts'
import type { SecretResource } from '../../../ground/model/resources.ts'

/** Values of received secrets, by digest. */
export class ReceivedSecrets implements SecretValues {
  readonly #values = new Map<string, Uint8Array>()

  set({ digest, value }: SecretResource): void {
    this.#values.set(digest, value)
  }

  remove({ digest }: SecretResource): void {
    this.#values.delete(digest)
  }

  find(digest: string): Uint8Array | undefined {
    return this.#values.get(digest)
  }

  value(digest: string): Uint8Array {
    const value = this.#values.get(digest)
    if (value === undefined) throw new Error('the gateway does not have the value of a Secret yet')
    return value
  }
}
