/** The received configuration in a readable form. */

import type { ConfigChannel, ConfigUpdate, Rejection } from '../../../control/wire/channel.ts'
import { decodeDelta } from '../../../control/wire/decode.ts'
import type { PolicyResource, Resource, ResourceType } from '../../../ground/model/resources.ts'
import { withoutCredentials } from '../../../ground/secrets/redact-credentials.ts'

interface DumpState {
  readonly version: string
  /** Sequence of the last change set that every worker applied; -1 before the first. */
  readonly sequence: number
  readonly rejected: readonly Rejection[]
  readonly workers: readonly { readonly index: number; readonly sequence: number }[]
}

function currentState(channel: ConfigChannel): ConfigUpdate | undefined {
  let full: ConfigUpdate | undefined
  channel.subscribe((update) => {
    if (update.isPart !== true) full = update
  })()
  return full
}

/** Parses the compiled config of a policy, which is JSON text. */
function readable(policy: PolicyResource): unknown {
  try {
    return { ...policy, config: JSON.parse(policy.config) }
  } catch {
    return { ...policy, config: '<not JSON>' }
  }
}

/** Hides the value of a secret, including its length. */
function withoutValue(resource: Resource): unknown {
  return resource.type === 'secret' ? { ...resource, value: '<redacted>' } : resource
}

function dumpResource(version: string, resource: Resource): unknown {
  const { key, type, ...rest } =
    resource.type === 'policy' ? asRecord(readable(resource)) : asRecord(withoutValue(resource))
  return { key, version, ...asRecord(withoutCredentials(rest, isSecretMember)) }
}

const asRecord = (value: unknown) => value as Record<string, unknown>

/** Names of members that contain credentials written by users. Values of Secrets never reach the dump. */
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

const isSecretMember = (name: string) => secretMembers.has(name.toLowerCase())

/** Formatted JSON: resources by type, sorted by key, with credentials redacted. */
export function configDump(channel: ConfigChannel, state: DumpState): string {
  const update = currentState(channel)
  const resources: Partial<Record<ResourceType, unknown[]>> = {}
  if (update !== undefined) {
    const { base, bytes } = update
    const { upserted: newer } = decodeDelta(bytes)
    const { upserted: good } = base === undefined ? { upserted: [] } : decodeDelta(base)
    const keys = new Set(newer.map(({ resource }) => resource.key))
    const upserted = [...newer, ...good.filter(({ resource }) => !keys.has(resource.key))]
    const sorted = upserted.toSorted((a, b) => (a.resource.key < b.resource.key ? -1 : 1))
    for (const { version, resource } of sorted) {
      const list = resources[resource.type] ?? []
      list.push(dumpResource(version, resource))
      resources[resource.type] = list
    }
  }
  const { version, sequence, rejected, workers } = state
  const published = update?.sequence ?? -1
  const dump = { version, published, sequence, workers, rejected, resources }
  return `${JSON.stringify(dump, undefined, 2)}\n`
}
