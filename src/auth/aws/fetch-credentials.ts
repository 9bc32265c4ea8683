import { readFields } from '../fetch-text.ts'
import type { ExpiringCredentials } from './credential-source.ts'

/** The form in which containers and instances get their credentials. */
export function parseCredentials(what: string, text: string): ExpiringCredentials {
  const fields = readFields(text)
  const { AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey } = fields
  const { Token: sessionToken, Expiration: expiration } = fields
  if (typeof accessKeyId !== 'string' || typeof secretAccessKey !== 'string') {
    throw new Error(`${what} answered without credentials`)
  }
  const expiresAt = typeof expiration === 'string' ? Date.parse(expiration) : Number.NaN
  return {
    accessKeyId,
    secretAccessKey,
    ...(typeof sessionToken === 'string' && { sessionToken }),
    ...(!Number.isNaN(expiresAt) && { expiresAt }),
  }
}
