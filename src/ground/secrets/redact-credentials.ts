/** Removes credentials from configuration that leaves the machine: exports, the console and the dump. */
import { redacted } from './credential-names.ts'
import {
  isCredentialHeader,
  literalDigest,
  placeholderDigest,
  replaceLiterals,
} from './placeholder.ts'

type Members = Readonly<Record<string, unknown>>

/** Whether a text member, such as `password`, is a credential by its name. */
type IsSecretMember = (name: string) => boolean

const never: IsSecretMember = () => false

/** A SecretRef is kept, because its `key` is only the name of an entry. */
function isSecretRef(value: Members): boolean {
  return Object.keys(value).sort().join() === 'digest,key,name,namespace'
}

/**
 * Copies a JSON value with credentials replaced by `<redacted>`: the `value` beside the `name` of a header or
 * variable with the name of a credential, the literals of an expression that sets or reads such a header, and
 * text members that `isSecretMember` accepts. Names, types and the syntax of expressions stay, so that the
 * copy of a valid object is valid.
 */
export function withoutCredentials(
  value: unknown,
  isSecretMember: IsSecretMember = never,
  isTransformation = false,
): unknown {
  if (typeof value === 'string') return readsCredential(value) ? withoutLiterals(value) : value
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) {
    return value.map((item) => withoutCredentials(item, isSecretMember, isTransformation))
  }
  const members = value as Members
  if (isSecretRef(members)) return members
  const isCredential = isCredentialHeader(members.name)
  const copy = Object.entries(members).map(([name, member]): [string, unknown] => {
    if (typeof member !== 'string') {
      const isBelow = isTransformation || name === 'transformation'
      return [name, withoutCredentials(member, isSecretMember, isBelow)]
    }
    if (isCredential && (name === 'expression' || (name === 'value' && isTransformation))) {
      return [name, withoutLiterals(member)]
    }
    if ((isCredential && name === 'value') || isSecretMember(name)) {
      return [name, placeholderDigest(member) === undefined ? redacted : member]
    }
    return [name, withoutCredentials(member)]
  })
  return Object.fromEntries(copy)
}

/** Matches a header that an expression reads by its name. */
const headerRead = /\bheaders(?:\.([\w-]+)|\[\s*["']([^"']+)["']\s*\])/g

function readsCredential(text: string): boolean {
  if (!text.includes('headers')) return false
  for (const [, field, index] of text.matchAll(headerRead)) {
    if (isCredentialHeader(field ?? index)) return true
  }
  return false
}

/** Placeholders stay, so that a copy of what the log has gives the same state. */
const withoutLiterals = (expression: string): string =>
  replaceLiterals(expression, (found) =>
    literalDigest(found) === undefined ? `"${redacted}"` : found,
  )
