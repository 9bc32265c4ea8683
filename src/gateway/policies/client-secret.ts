/** The secrets of the gateway as a client of authorization servers. */
import { missingEntry, type References } from '../../ground/model/references.ts'
import type { SecretRef } from '../../ground/model/resources.ts'

/** Returns the client secret in a Secret, or why there is none. */
export function clientSecretOf(
  { name, key: given }: { readonly name: string; readonly key?: string },
  references: References,
): SecretRef | string {
  const secret = references.secret(name)
  if (secret === undefined) return `Secret ${name} does not exist`
  for (const key of given === undefined ? ['clientSecret', 'client-secret'] : [given]) {
    const ref = secret.ref(key)
    if (ref === undefined) continue
    return secret.entries[key]?.isEmpty === true ? `Secret ${secret.label}: ${key} is empty` : ref
  }
  return missingEntry(secret, given ?? 'clientSecret')
}

/** Returns the keys, the one that seals first, or why there are none. */
export function sealingKeysOf(name: string, references: References): readonly SecretRef[] | string {
  const secret = references.secret(name)
  if (secret === undefined) return `Secret ${name} does not exist`
  const names = Object.keys(secret.entries).sort().reverse()
  const keys = names.flatMap((key) => secret.ref(key) ?? [])
  return keys.length === 0 ? `Secret ${secret.label} has no entry` : keys
}
