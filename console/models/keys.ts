/** The API keys that policies accept, with everything but the keys themselves and their hashes. */
import { type DynamicKeys, dynamicKeysInput } from '../../src/ground/model/dynamic-keys.ts'
import { compareText, objectKey } from '../../src/ground/model/names.ts'
import type { PolicyResource } from '../../src/ground/model/resources.ts'
import {
  apiKeyFaults,
  apiKeyState,
  readApiKeyEntry,
} from '../../src/ground/secrets/api-key-entry.ts'
import type { Moment } from '../log/loaded-log.ts'

export interface KeyRow {
  readonly name: string
  /** Such as `active`, or why the entry is not a key. Unknown for keys in Secrets, which no log has. */
  readonly state: string
  readonly owner: string
  readonly team: string
  /** RFC 3339; empty if the key does not expire. */
  readonly expires: string
  /** Names of models and routes; empty if the key may use all. */
  readonly models: readonly string[]
  readonly routes: readonly string[]
  /** Keys of the objects with the policies that accept the key. */
  readonly policies: readonly string[]
}

/** The compiled policy, as far as it names keys. */
interface KeysConfig {
  readonly names?: readonly string[]
  readonly hashed?: readonly { readonly name: string; readonly text: string }[]
}

/** Returns the keys by name. `nowMs` decides which have expired. */
export function keysModel(moment: Moment, { nowMs }: { readonly nowMs: number }): KeyRow[] {
  const rows = new Map<string, KeyRow>()
  for (const [, { resource }] of moment.resources.entries()) {
    if (resource.type !== 'policy' || resource.field !== 'apiKeyAuthentication') continue
    const policy = policyOf(resource)
    const { names = [], hashed = [] } = JSON.parse(resource.config) as KeysConfig
    const found = [
      ...names.map((name) => inSecret(name)),
      ...hashed.map(({ name, text }) => inConfigMap(name, text, nowMs)),
    ]
    for (const row of found) {
      const id = JSON.stringify(row)
      const { policies = [] } = rows.get(id) ?? {}
      rows.set(id, { ...row, policies: [...new Set([...policies, policy])] })
    }
  }
  return [...rows.values()].sort((a, b) => compareText(a.name, b.name))
}

interface DynamicKeyRow {
  readonly namespace: string
  readonly name: string
  readonly state: string
}

const dynamicPrefix = dynamicKeysInput('')

/** The keys that are events of the log, by namespace and name. */
export function dynamicKeysModel(moment: Moment, { nowMs }: { readonly nowMs: number }) {
  const rows: DynamicKeyRow[] = []
  for (const [input, keys] of moment.fold().graph.inputs) {
    if (!input.startsWith(dynamicPrefix)) continue
    const namespace = input.slice(dynamicPrefix.length)
    for (const [name, text] of keys as DynamicKeys) {
      rows.push({ namespace, name, state: inConfigMap(name, text, nowMs).state })
    }
  }
  const textOf = ({ namespace, name }: DynamicKeyRow) => `${namespace}/${name}`
  return rows.sort((a, b) => compareText(textOf(a), textOf(b)))
}

const policyOf = ({ target, policy }: PolicyResource): string =>
  target.inline === true ? objectKey(target) : objectKey({ kind: 'GatewayPolicy', ...policy })

const nothing = { owner: '', team: '', expires: '', models: [], routes: [], policies: [] }

const inSecret = (name: string): KeyRow => ({ ...nothing, name, state: 'in a Secret' })

function inConfigMap(name: string, text: string, nowMs: number): KeyRow {
  const entry = readApiKeyEntry(text)
  if (typeof entry === 'string') {
    return { ...nothing, name, state: `unusable: ${apiKeyFaults[entry]}` }
  }
  const { metadata, expiresAt, allowedModels = [], allowedRoutes = [] } = entry
  const member = (key: string) => {
    const value = (metadata as Readonly<Record<string, unknown>> | undefined)?.[key]
    return typeof value === 'string' ? value : ''
  }
  return {
    name,
    state: apiKeyState(entry, nowMs),
    owner: member('owner'),
    team: member('team'),
    expires: expiresAt === undefined ? '' : new Date(expiresAt).toISOString(),
    models: allowedModels,
    routes: allowedRoutes,
    policies: [],
  }
}
