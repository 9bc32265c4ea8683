import { selectsDynamicKeys } from '../../../ground/model/dynamic-keys.ts'
import type {
  ReferencedConfigMap,
  ReferencedSecret,
  References,
} from '../../../ground/model/references.ts'
import type { SecretRef } from '../../../ground/model/resources.ts'
import { type Infer, object, optional, required } from '../../../ground/schema/field.ts'
import { exactlyOneOf } from '../../../ground/schema/rules.ts'
import { credentialLocation, credentialMode } from '../../../ground/schema/shapes/authentication.ts'
import { localReference } from '../../../ground/schema/shapes/references.ts'
import { labels } from '../../../ground/schema/shapes/selectors.ts'
import { apiKeyFaults, readApiKeyEntry } from '../../../ground/secrets/api-key-entry.ts'
import { compileLocation } from '../../tokens/compile-location.ts'
import { definePolicy, type PolicyProblem } from '../define.ts'

const secretSelector = object(
  'SecretSelector',
  { matchLabels: required(labels, 'Labels that a Secret must have.') },
  { refersTo: 'Secret' },
)

const configMapSelector = object(
  'ConfigMapSelector',
  { matchLabels: required(labels, 'Labels that a ConfigMap must have.') },
  { refersTo: 'ConfigMap' },
)

const apiKeyAuthenticationSchema = object(
  'APIKeyAuthentication',
  {
    mode: optional(credentialMode, { doc: 'What happens without a valid key.', default: 'Strict' }),
    location: optional(
      credentialLocation,
      'Where the key is. If not set, in `Authorization` with the scheme `Bearer`, or where clients of the models of the route put it.',
    ),
    secretRef: optional(
      localReference('Secret'),
      'Secret with the keys. Each entry is one key, as text or as JSON (`key` or `keyHash`, `metadata`, `expiresAt`, `disabled`, `allowedModels`, `allowedRoutes`, `previous`).',
    ),
    secretSelector: optional(secretSelector, 'Several such Secrets, chosen by label.'),
    configMapSelector: optional(
      configMapSelector,
      'ConfigMaps, chosen by label, whose entries have the hash of a key (`keyHash`) in place of the key. With only the label `sluice.dev/api-keys: "true"`, also the keys of `sluice keys create --dynamic` for the namespace.',
    ),
  },
  { rules: [exactlyOneOf('secretRef', 'secretSelector', 'configMapSelector')] },
)
type ApiKeyAuthenticationSpec = Infer<typeof apiKeyAuthenticationSchema>
type Labels = Readonly<Record<string, string>>

/** An entry with the hash of a key, as a ConfigMap has it. */
interface HashedEntry {
  readonly name: string
  readonly text: string
  readonly source: string
}

interface Found {
  readonly secrets: SecretRef[]
  /** The objects that have the entries of `secrets`, in the same order. */
  readonly sources: string[]
  readonly hashed: HashedEntry[]
  readonly problems: PolicyProblem[]
  /** Warnings about duplicate keys and names. */
  readonly notes: string[]
  /** The object that has each name of an entry. */
  readonly named: Map<string, string>
}

/**
 * Leaves out entries that cannot be used as keys, and reports them. If no entry is left, the policy still
 * applies, but no key is valid: Strict rejects all requests, and the status says why.
 */
function compile(spec: ApiKeyAuthenticationSpec, references: References) {
  const { mode = 'Strict', configMapSelector: byLabel, location } = spec
  const found: Found = {
    secrets: [],
    sources: [],
    hashed: [],
    problems: [],
    notes: [],
    named: new Map(),
  }
  if (byLabel === undefined) findSecretKeys(spec, references, found)
  else findHashedKeys(byLabel.matchLabels, references, found)
  const { secrets, sources, hashed, problems, notes } = found
  const config = {
    mode,
    entries: secrets.map(({ digest }) => digest),
    names: secrets.map(({ key }) => key),
    sources,
    ...(byLabel && { hashed }),
    ...(location && { location: compileLocation(location) }),
  }
  return { config, problems, protects: true as const, secrets, notes }
}

function findSecretKeys(spec: ApiKeyAuthenticationSpec, references: References, found: Found) {
  const path = spec.secretRef === undefined ? 'secretSelector' : 'secretRef'
  const secrets = findSecrets(spec, references)
  if (typeof secrets === 'string') reportNone(found, path, secrets)
  else {
    for (const secret of secrets) collect(secret, path, found)
    if (found.secrets.length === 0) reportUnusable(found, path, 'Secret', secrets)
  }
}

function findSecrets(
  { secretRef, secretSelector }: ApiKeyAuthenticationSpec,
  references: References,
): readonly ReferencedSecret[] | string {
  if (secretRef !== undefined) {
    const secret = references.secret(secretRef.name)
    return secret === undefined ? `Secret ${secretRef.name} does not exist` : [secret]
  }
  return selected('Secret', secretSelector?.matchLabels ?? {}, references.secretsWith)
}

/** Returns the objects with all of the labels, or why there are none. */
function selected<Selected>(
  kind: string,
  matchLabels: Labels,
  find: (labels: Labels) => readonly Selected[],
): readonly Selected[] | string {
  // Without labels every Secret in the namespace would match, including private keys for TLS.
  if (Object.keys(matchLabels).length === 0) return 'matchLabels is empty'
  const objects = find(matchLabels)
  return objects.length === 0 ? `no ${kind} has these labels` : objects
}

function reportNone({ problems }: Found, path: string, reason: string): void {
  problems.push({ path, message: `${reason}; no key is accepted` })
}

function reportUnusable(
  found: Found,
  path: string,
  kind: string,
  objects: readonly { readonly label: string }[],
): void {
  const names = objects.map(({ label }) => label).join(', ')
  reportNone(found, path, `${kind} ${names} contains no usable key`)
}

function collect(secret: ReferencedSecret, path: string, found: Found): void {
  for (const [key, { apiKey = '' }] of Object.entries(secret.entries).sort(byName)) {
    const ref = secret.ref(key)
    if (ref !== undefined && (apiKey === 'plain' || apiKey === 'json')) {
      const source = `Secret ${secret.label}`
      found.secrets.push(ref)
      found.sources.push(source)
      noteName(found, path, key, source)
    } else {
      const reasons: Readonly<Record<string, string>> = apiKeyFaults
      const message = `entry ${key} of Secret ${secret.label} ${reasons[apiKey] ?? 'is not a key'}`
      found.problems.push({ path, message, partial: true })
    }
  }
}

/** Keys with one name have one `apiKey.id`, and so share limits by that id. */
function noteName({ named, notes }: Found, path: string, name: string, object: string): void {
  const other = named.get(name)
  if (other === undefined) named.set(name, object)
  else if (other !== object) {
    notes.push(`${path}: entry ${name} of ${object} has the same apiKey.id as that of ${other}`)
  }
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1
}

/** Entries with hashes, and what has them, such as `ConfigMap default/keys`. */
interface HashedKeys extends Pick<ReferencedConfigMap, 'names' | 'entry'> {
  readonly owner: string
}

function findHashedKeys(matchLabels: Labels, references: References, found: Found): void {
  const path = 'configMapSelector'
  const configMaps = selected('ConfigMap', matchLabels, references.configMapsWith)
  const dynamic = selectsDynamicKeys(matchLabels) ? references.dynamicApiKeys() : new Map()
  const owners = new Map<string, string>()
  if (typeof configMaps !== 'string') {
    for (const { label, names, entry } of configMaps) {
      collectHashed({ owner: `ConfigMap ${label}`, names, entry }, path, found, owners)
    }
  }
  collectHashed(
    {
      owner: 'the event log',
      names: [...(dynamic?.keys() ?? [])],
      entry: (name) => dynamic?.get(name),
    },
    path,
    found,
    owners,
  )
  if (found.hashed.length > 0) return
  if (dynamic === undefined) {
    found.notes.push(`${path}: only keys of \`sluice keys create --dynamic\` are accepted`)
  } else if (typeof configMaps === 'string') reportNone(found, path, configMaps)
  else reportUnusable(found, path, 'ConfigMap', configMaps)
}

/** `owners` maps each hash to the entry that has it. */
function collectHashed(
  { owner: object, names, entry: textOf }: HashedKeys,
  path: string,
  found: Found,
  owners: Map<string, string>,
): void {
  const { hashed, problems, notes } = found
  for (const name of names.toSorted()) {
    const text = textOf(name)
    const entry = readApiKeyEntry(text)
    const label = `entry ${name} of ${object}`
    if (typeof entry === 'string') {
      problems.push({ path, message: `${label} ${apiKeyFaults[entry]}`, partial: true })
    } else if (entry.keyHash === undefined || text === undefined) {
      const message = `${label} has the key itself, which anyone who reads ConfigMaps would see; use "keyHash", or a Secret`
      problems.push({ path, message, partial: true })
    } else {
      const owner = owners.get(entry.keyHash)
      if (owner !== undefined)
        notes.push(`${path}: ${label} duplicates the key of ${owner} and is ignored`)
      else {
        owners.set(entry.keyHash, label)
        hashed.push({ name, text, source: object })
        noteName(found, path, name, object)
      }
    }
  }
}

/** Requires requests to carry a valid API key. */
export const apiKeyAuthentication = definePolicy({
  section: 'traffic',
  field: 'apiKeyAuthentication',
  schema: apiKeyAuthenticationSchema,
  doc: 'Requires an API key.',
  security: true,
  preRouting: true,
  expressions: [{ path: 'location.expression', point: 'credentials' }],
  compile,
  apply: () => import('./apply.ts'),
})
