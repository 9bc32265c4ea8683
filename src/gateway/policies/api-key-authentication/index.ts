import type { ReferencedSecret, References } from '../../../ground/model/references.ts'
import type { SecretRef } from '../../../ground/model/resources.ts'
import { type Infer, object, optional, required } from '../../../ground/schema/field.ts'
import { exactlyOneOf } from '../../../ground/schema/rules.ts'
import { credentialMode } from '../../../ground/schema/shapes/authentication.ts'
import { localReference } from '../../../ground/schema/shapes/references.ts'
import { labels } from '../../../ground/schema/shapes/selectors.ts'
import { definePolicy, type PolicyProblem } from '../define.ts'

const secretSelector = object(
  'SecretSelector',
  { matchLabels: required(labels, 'Labels that a Secret must have.') },
  { refersTo: 'Secret' },
)

const apiKeyAuthenticationSchema = object(
  'APIKeyAuthentication',
  {
    mode: optional(credentialMode, { doc: 'What happens without a valid key.', default: 'Strict' }),
    secretRef: optional(
      localReference('Secret'),
      'Secret with the keys: each entry is one key, as text or as JSON with key and metadata.',
    ),
    secretSelector: optional(secretSelector, 'Several such Secrets, chosen by label.'),
  },
  { rules: [exactlyOneOf('secretRef', 'secretSelector')] },
)
type ApiKeyAuthenticationSpec = Infer<typeof apiKeyAuthenticationSchema>

/** Why an entry cannot be used as a key, by its `apiKey` metadata. */
const reasons: Readonly<Record<string, string>> = {
  empty: 'is empty',
  'not-json': 'begins with { and is not JSON',
  'json-without-key': 'is JSON without a "key" that is a text',
  'not-text': 'is not UTF-8 text',
}

/**
 * Leaves out entries that cannot be used as keys, and reports them. If no entry is left, the policy still
 * applies, but no key is valid: Strict rejects all requests, and the status says why.
 */
function compile(spec: ApiKeyAuthenticationSpec, references: References) {
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
      problems.push({ path, message: `Secret ${names} contains no usable key; no key is accepted` })
    }
  }
  const config = { mode, entries: entries.map(({ digest }) => digest) }
  return { config, problems, protects: true as const, secrets: entries }
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
  // Without labels every Secret in the namespace would match, including private keys for TLS.
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
      const message = `entry ${key} of Secret ${secret.label} ${reasons[apiKey] ?? 'is not a key'}`
      problems.push({ path, message, partial: true })
    }
  }
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1
}

/** Requires requests to carry a valid API key. */
export const apiKeyAuthentication = definePolicy({
  section: 'traffic',
  field: 'apiKeyAuthentication',
  schema: apiKeyAuthenticationSchema,
  doc: 'Requires an API key.',
  security: true,
  preRouting: true,
  compile,
  apply: () => import('./apply.ts'),
})
