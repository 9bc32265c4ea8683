import type { ReferencedSecret, References } from '../../model/references.ts'
import type { SecretRef } from '../../model/resources.ts'
import type { Compiled, PolicyProblem } from '../define.ts'
import type { ApiKeyAuthenticationConfig } from './config.ts'
import type { ApiKeyAuthenticationSpec } from './schema.ts'

/** Why an entry cannot serve, by what observation found. */
const reasons: Readonly<Record<string, string>> = {
  empty: 'is empty',
  'not-json': 'begins with { and is not JSON',
  'json-without-key': 'is JSON without a "key" that is a text',
  'not-text': 'is not UTF-8 text',
}

/**
 * Entries that cannot serve are named and left out. Where none is left the policy stays in force
 * without a valid key: Strict then refuses everyone, and the status says why.
 */
export function compile(
  spec: ApiKeyAuthenticationSpec,
  references: References,
): Compiled<ApiKeyAuthenticationConfig> {
  const { mode = 'Strict' } = spec
  const path = spec.secretRef === undefined ? 'secretSelector' : 'secretRef'
  const found = findSecrets(spec, references)
  const entries: SecretRef[] = []
  const problems: PolicyProblem[] = []
  if (typeof found === 'string') problems.push({ path, message: `${found}; no key is accepted` })
  else {
    for (const secret of found) collect(secret, path, entries, problems)
    if (entries.length === 0) {
      const names = found.map(({ label }) => label).join(', ')
      problems.push({ path, message: `Secret ${names} holds no usable key; no key is accepted` })
    }
  }
  const config = { mode, entries: entries.map(({ digest }) => digest) }
  return { config, problems, protects: true, secrets: entries }
}

function findSecrets(
  { secretRef, secretSelector }: ApiKeyAuthenticationSpec,
  references: References,
): readonly ReferencedSecret[] | string {
  if (secretRef !== undefined) {
    const secret = references.secret(secretRef.name)
    return secret === undefined ? `Secret ${secretRef.name} does not exist` : [secret]
  }
  const labels = secretSelector?.matchLabels ?? {}
  // It would make a key of every entry of every Secret in the namespace, private keys included.
  if (Object.keys(labels).length === 0) return 'matchLabels is empty'
  const secrets = references.secretsWith(labels)
  return secrets.length === 0 ? 'no Secret has these labels' : secrets
}

function collect(
  secret: ReferencedSecret,
  path: string,
  entries: SecretRef[],
  problems: PolicyProblem[],
): void {
  for (const [key, { apiKey = '' }] of Object.entries(secret.entries).sort(byName)) {
    const ref = secret.ref(key)
    if (ref !== undefined && (apiKey === 'plain' || apiKey === 'json')) entries.push(ref)
    else {
      const message = `entry ${key} of Secret ${secret.label} ${reasons[apiKey] ?? 'is no key'}`
      problems.push({ path, message, partial: true })
    }
  }
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1
}
