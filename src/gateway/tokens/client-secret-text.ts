import { isUtf8 } from 'node:buffer'
import type { SecretValues } from '../../ground/exchange/exchange.ts'

/** Returns the text of a client secret. Throws if it has not arrived, or is no text. */
export function clientSecretText(digest: string, secrets: SecretValues): string {
  const value = secrets.value(digest)
  if (!isUtf8(value)) throw new Error('the client secret is not UTF-8')
  return Buffer.from(value).toString().trimEnd()
}
