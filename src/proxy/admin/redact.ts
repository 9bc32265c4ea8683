/**
 * Takes out of a configuration dump what may be a credential. Values of Secrets never reach the
 * dump; this is for credentials that a user has written inline.
 */
import { isCredentialName, redacted } from '../../base/credential-names.ts'

const secretMembers = new Set([
  'apikey',
  'authorization',
  'clientsecret',
  'key',
  'password',
  'privatekey',
  'secret',
  'token',
])

/** Is this `{ name, value }` of a header that carries a credential? */
function isSecretHeader(value: Readonly<Record<string, unknown>>): boolean {
  return (
    typeof value.name === 'string' &&
    typeof value.value === 'string' &&
    (isCredentialName(value.name) || value.name.toLowerCase() === 'set-cookie')
  )
}

/** A SecretRef and nothing else: its `key` is the name of an entry. */
function isSecretRef(value: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(value).sort().join() === 'digest,key,name,namespace'
}

/** A copy of a JSON value with credentials redacted; `key` at the top of a resource is its name. */
export function redact(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(redact)
  if (value === null || typeof value !== 'object') return value
  const record = value as Readonly<Record<string, unknown>>
  if (isSecretRef(record)) return record
  const copy: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(record)) {
    const isSecret = secretMembers.has(name.toLowerCase()) && typeof member === 'string'
    copy[name] = isSecret ? redacted : redact(member)
  }
  if (isSecretHeader(record)) copy.value = redacted
  return copy
}
