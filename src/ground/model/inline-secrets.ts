/**
 * Secrets that users write into the objects themselves. The log contains placeholders. The values
 * are sent like those of Secrets, and proxies insert them when they bind a configuration.
 */
import {
  isCredentialHeader,
  literalDigest,
  placeholderDigest,
  replaceLiterals,
} from '../secrets/placeholder.ts'
import {
  type HeaderChanges,
  type HeaderValue,
  type RouteFilter,
  type SecretRef,
  secretsOfFilters,
  secretsOfHeaders,
} from './resources.ts'

/** Returns the value of a secret. Throws if it has not arrived. */
interface SecretValues {
  value(digest: string): Uint8Array
}

const refOf = (digest: string, path: string): SecretRef => ({
  namespace: '',
  name: '',
  key: path,
  digest,
})

const textOf = (digest: string, secrets: SecretValues): string =>
  new TextDecoder().decode(secrets.value(digest))

/** Makes a reference to an inline secret. `path` is the path of the field that holds it, for messages. */
export function inlineSecretRef(text: string, path: string): SecretRef {
  return refOf(placeholderDigest(text) ?? text, path)
}

/** Header changes as users write them; values of credentials are placeholders. */
interface WrittenChanges {
  readonly set?: readonly HeaderValue[] | undefined
  readonly add?: readonly HeaderValue[] | undefined
  readonly remove?: readonly string[] | undefined
}

/** Replaces placeholders of credentials by references. Logs of earlier versions have values in their place. */
export function headerChangesOf({
  set = noChanges,
  add = noChanges,
  remove = noChanges,
}: WrittenChanges): HeaderChanges {
  const valuesOf = (list: readonly HeaderValue[]) =>
    list.length === 0 ? noChanges : list.map(headerValueOf)
  return { set: valuesOf(set), add: valuesOf(add), remove }
}

const noChanges: readonly never[] = []

function headerValueOf({ name, value }: HeaderValue): HeaderValue {
  const digest = isCredentialHeader(name) ? placeholderDigest(value) : undefined
  return digest === undefined ? { name, value } : { name, value: '', secret: refOf(digest, name) }
}

/** Returns changes with the values of their secrets. Throws if one has not arrived. */
export function revealHeaders(changes: HeaderChanges, secrets: SecretValues): HeaderChanges {
  if (secretsOfHeaders(changes).length === 0) return changes
  const reveal = ({ name, value, secret }: HeaderValue): HeaderValue => ({
    name,
    value: secret === undefined ? value : textOf(secret.digest, secrets),
  })
  return { ...changes, set: changes.set.map(reveal), add: changes.add.map(reveal) }
}

/** Returns filters with the values of their secrets. Throws if one has not arrived. */
export function revealFilters(
  filters: readonly RouteFilter[],
  secrets: SecretValues,
): readonly RouteFilter[] {
  if (secretsOfFilters(filters).length === 0) return filters
  return filters.map((filter) =>
    'changes' in filter ? { ...filter, changes: revealHeaders(filter.changes, secrets) } : filter,
  )
}

/** Returns the secrets in expressions that compute headers with the name of a credential. */
export function secretsOfLiterals(
  headers: Iterable<{ readonly name: string; readonly expression: string }>,
): SecretRef[] {
  const refs = new Map<string, SecretRef>()
  for (const { name, expression } of headers) {
    if (!isCredentialHeader(name)) continue
    replaceLiterals(expression, (literal) => {
      const digest = literalDigest(literal)
      if (digest !== undefined) refs.set(digest, refOf(digest, name))
      return literal
    })
  }
  return [...refs.values()]
}

/** Puts the values of `digests` into an expression. Throws if a value has not arrived. */
export function revealLiterals(
  expression: string,
  digests: readonly string[] | undefined,
  secrets: SecretValues,
): string {
  if (digests === undefined) return expression
  return replaceLiterals(expression, (literal) => {
    const digest = literalDigest(literal)
    return digest !== undefined && digests.includes(digest) ? textOf(digest, secrets) : literal
  })
}
