import type { ExpiringCredentials } from './credential-chain.ts'

/** What a credential service may take to answer. */
export const patienceMs = 5_000
/** What it may answer. */
const mostBytes = 65_536

/** Text of an answer; rejects where it is none, or no success. Messages never hold the answer. */
export async function fetchText(
  what: string,
  url: string,
  init: RequestInit = {},
  waitMs = patienceMs,
): Promise<string> {
  const signal = AbortSignal.timeout(waitMs)
  const response = await fetch(url, { redirect: 'error', signal, ...init }).catch((cause) => {
    throw new Error(`${what} cannot be reached`, { cause })
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${what} answered ${response.status}`)
  if (text.length > mostBytes) throw new Error(`${what} answered too much`)
  return text
}

/** The form in which containers and instances get their credentials. */
export function parseCredentials(what: string, text: string): ExpiringCredentials {
  const fields = readObject(text)
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

function readObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
