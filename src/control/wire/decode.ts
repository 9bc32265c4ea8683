/**
 * Decodes desired state. Resources that this version cannot read (because their type, a word or a
 * shape is newer) are reported and left out; the rest of the change set is applied.
 */
import {
  type DesiredDelta,
  type PolicyResource,
  policySections,
  type Resource,
  type ResourceKey,
} from '../../ground/model/resources.ts'
import { Findings } from './fields.ts'
import { deltaCodec, policyPhases } from './shapes.ts'

/** A resource that could not be read, or not completely. The receiver rejects it by its key. */
interface UnreadableResource {
  /** Empty if not even the key could be read. */
  readonly key: ResourceKey
  readonly version: string
  /** Error code from the error catalogue. Partly known resources are applied without unknown fields. */
  readonly code: 'resource_unreadable' | 'resource_partly_known'
  readonly message: string
}

export interface DecodedDelta extends DesiredDelta {
  readonly unreadable: readonly UnreadableResource[]
}

/** A `Delta` message as the codec decodes it. */
interface ReadDelta {
  readonly sequence: number
  readonly upserted: readonly {
    readonly version: string
    readonly resource?: { readonly resource: Resource; readonly findings: Findings }
  }[]
  readonly removed: readonly ResourceKey[]
}

const unknownField = 'it has a field that this version does not know'

/** Could ignoring an unknown field of the resource let something through? */
function mayProtect(resource: Resource): boolean {
  if (resource.type === 'listener') return resource.tls !== undefined
  return resource.type === 'policy' && resource.dispensable !== true
}

/** Returns undefined if the resource can be used, otherwise the reason why it cannot. */
function problemOf(resource: Resource, { hasUnknownFields, problem }: Findings) {
  return hasUnknownFields && mayProtect(resource) ? unknownField : problem
}

/**
 * Replaces a policy that cannot be read: all requests that it applies to are rejected. Returns undefined
 * if its target cannot be read. `read` may lack members or have unknown words.
 */
function closedPolicy(read: Partial<Resource>, why: string): PolicyResource | undefined {
  if (read.type !== 'policy' || read.target?.kind === undefined) return undefined
  const { secrets: _secrets, dispensable: _dispensable, ...policy } = read as PolicyResource
  return {
    ...policy,
    created: read.created ?? 0,
    order: read.order ?? 0,
    section: policySections.find((section) => section === read.section) ?? 'traffic',
    phase: policyPhases.find((phase) => phase === read.phase) ?? 'PostRouting',
    config: '{}',
    unenforceable: `this proxy cannot read it: ${why}`,
  }
}

/**
 * Reads a `sluice.resource.v1.Delta` message. Resources that cannot be read, or not completely, are
 * listed in `unreadable`. Throws if the bytes are not such a message.
 */
export function decodeDelta(bytes: Uint8Array): DecodedDelta {
  const { sequence, upserted, removed } = deltaCodec.decode(bytes, new Findings()) as ReadDelta
  const readable: DesiredDelta['upserted'][number][] = []
  const unreadable: UnreadableResource[] = []
  for (const { version, resource: read } of upserted) {
    const key = read?.resource.key ?? ''
    const report = (code: UnreadableResource['code'], message: string) =>
      unreadable.push({ key, version, code, message })
    if (read === undefined) {
      report('resource_unreadable', 'resource is missing')
      continue
    }
    const problem = problemOf(read.resource, read.findings)
    const resource = problem === undefined ? read.resource : closedPolicy(read.resource, problem)
    if (resource !== undefined) readable.push({ version, resource })
    if (problem !== undefined) report('resource_unreadable', problem)
    else if (read.findings.hasUnknownFields) report('resource_partly_known', unknownField)
  }
  return { sequence, upserted: readable, removed, unreadable }
}
