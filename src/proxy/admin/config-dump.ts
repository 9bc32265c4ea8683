/** What the proxy has been told, for people. */
import type { PolicyResource, Resource, ResourceType } from '../../model/resources.ts'
import type { ConfigChannel, ConfigUpdate, Rejection } from '../../wire/channel.ts'
import { decodeDelta } from '../../wire/decode.ts'
import { redact } from './redact.ts'

interface DumpFacts {
  readonly version: string
  /** Position up to which the configuration is in force; -1 before the first. */
  readonly sequence: number
  readonly rejected: readonly Rejection[]
  readonly workers: readonly { readonly index: number; readonly sequence: number }[]
}

function currentState(channel: ConfigChannel): ConfigUpdate | undefined {
  let full: ConfigUpdate | undefined
  channel.subscribe((update) => {
    full = update
  })()
  return full
}

/** Policies keep their compiled form as JSON text; a dump shows it open. */
function readable(policy: PolicyResource): unknown {
  try {
    return { ...policy, config: JSON.parse(policy.config) }
  } catch {
    return { ...policy, config: '<not JSON>' }
  }
}

/** The value of a secret does not even show its length. */
function withoutValue(resource: Resource): unknown {
  return resource.type === 'secret' ? { ...resource, value: '<redacted>' } : resource
}

function dumpResource(version: string, resource: Resource): unknown {
  const { key, type, ...rest } =
    resource.type === 'policy' ? asRecord(readable(resource)) : asRecord(withoutValue(resource))
  return { key, version, ...asRecord(redact(rest)) }
}

const asRecord = (value: unknown) => value as Record<string, unknown>

/** Everything as pretty JSON: resources by type, in order of their keys, credentials hidden. */
export function configDump(channel: ConfigChannel, facts: DumpFacts): string {
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
  const { version, sequence, rejected, workers } = facts
  const published = update?.sequence ?? -1
  const dump = { version, published, sequence, workers, rejected, resources }
  return `${JSON.stringify(dump, undefined, 2)}\n`
}
