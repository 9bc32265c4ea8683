import { defineEvent, type EventOf } from './envelope.ts'

/** Position of an object in its file; set only by the file source. Lines start at 1. */
export interface Origin {
  readonly file: string
  readonly line: number
}

/** Kind, namespace and name. The namespace of cluster-scoped objects is the empty string. */
export interface ResourceName {
  readonly kind: string
  readonly namespace: string
  readonly name: string
}

/** A problem of one field, with a path such as `spec.rules[0].matches`. */
export interface FieldProblem {
  readonly path: string
  readonly message: string
}

/**
 * An object that a refused object refers to, as far as it can be read: a target of a policy, or a
 * parent of a route or a ListenerSet.
 */
export interface RefusedTarget {
  readonly group?: string
  readonly kind: string
  readonly namespace?: string
  readonly name?: string
  readonly sectionName?: string
  readonly port?: number
  /** Set in place of a name if the policy selects its targets by labels. */
  readonly matchLabels?: Readonly<Record<string, string>>
}

/** The status in the cluster of an object that was programmed before this log began. */
export interface WasProgrammed {
  readonly generation: number
  /** Addresses at which clients reach the object, including those of its proxies. */
  readonly addresses: readonly string[]
}

export interface ResourceAppliedData extends ResourceName {
  readonly uid: string
  readonly resourceVersion: string
  readonly generation: number
  readonly object: Readonly<Record<string, unknown>>
  readonly origin?: Origin
  readonly programmed?: WasProgrammed
}

export const resourceApplied = defineEvent<ResourceAppliedData>()({
  name: 'ResourceApplied',
  type: 'dev.sluice.resource.applied.v1',
  version: 1,
  about:
    'An object was observed for the first time, or in a new version. It is valid and redacted.',
  fields: {
    kind: 'Kubernetes kind.',
    namespace: 'Namespace; empty for cluster-scoped kinds.',
    name: 'Name.',
    uid: 'Identity of this incarnation; an object that is deleted and created again has another uid.',
    resourceVersion: 'Opaque version of the whole object; it differs after every change.',
    generation: 'Number that increases when the spec changes; conditions refer to it.',
    object:
      'The object without status, secret values, managedFields and the identity fields, which are separate. A Secret has `facts` instead of data, a Pod instead of spec.',
    origin: 'File and line, if the source is a file.',
    programmed:
      'Only for a Gateway or ListenerSet that is new to this log and that its status in the cluster reports as programmed: that generation and its addresses. It counts until proxies answer, or for 30 s if none connects.',
  },
})
export type ResourceApplied = EventOf<typeof resourceApplied>

export interface ResourceDeletedData extends ResourceName {
  readonly uid: string
  readonly resourceVersion: string
  readonly cause: 'watch' | 'relist'
}

export const resourceDeleted = defineEvent<ResourceDeletedData>()({
  name: 'ResourceDeleted',
  type: 'dev.sluice.resource.deleted.v1',
  version: 1,
  about: 'An object was deleted; its last valid version and any refused version no longer count.',
  fields: {
    kind: 'Kubernetes kind.',
    namespace: 'Namespace; empty for cluster-scoped kinds.',
    name: 'Name.',
    uid: 'The incarnation that was deleted.',
    resourceVersion: 'The last version that was observed.',
    cause:
      '`watch`: the deletion was observed; `relist`: a listing no longer contained the object.',
  },
})
export type ResourceDeleted = EventOf<typeof resourceDeleted>

export interface ResourceRefusedData extends ResourceName {
  readonly uid: string
  readonly resourceVersion: string
  readonly generation: number
  readonly problems: readonly FieldProblem[]
  readonly origin?: Origin
  readonly targets?: readonly RefusedTarget[]
  readonly appliesTo?: readonly string[]
}

export const resourceRefused = defineEvent<ResourceRefusedData>()({
  name: 'ResourceRefused',
  type: 'dev.sluice.resource.refused.v1',
  version: 1,
  about:
    'A version of an object is invalid. If there is a valid version, the last one stays in force.',
  fields: {
    kind: 'Kubernetes kind.',
    namespace: 'Namespace; empty for cluster-scoped kinds.',
    name: 'Name.',
    uid: 'Identity; it stays the same if the object becomes valid later.',
    resourceVersion: 'Version of the refused content.',
    generation: 'Generation that the refused content would have; conditions refer to it.',
    problems:
      'Problems, each with the path of the field and a message; they never contain a value.',
    origin: 'File and line, if the source is a file.',
    targets:
      'Objects that it refers to: the targets of a policy, so that a policy that cannot be enforced fails closed, or the parents of a route, to which its status refers.',
    appliesTo: 'Sections that an invalid policy sets, such as `traffic.authorization`.',
  },
})
export type ResourceRefused = EventOf<typeof resourceRefused>

export interface RelistStartedData {
  readonly source: string
  readonly scope: readonly string[]
  readonly unread?: readonly string[]
}

export const relistStarted = defineEvent<RelistStartedData>()({
  name: 'RelistStarted',
  type: 'dev.sluice.relist.started.v1',
  version: 1,
  about:
    'A source begins to list all of its objects. The events that follow are the differences from the log.',
  fields: {
    source: 'Name of the source, `files` or `kubernetes`.',
    scope: 'The listed paths or kinds.',
    unread:
      'Kinds that are not read because of a setting; present only in listings of a whole cluster.',
  },
})
export type RelistStarted = EventOf<typeof relistStarted>

export interface RelistFinishedData {
  readonly source: string
  readonly count: number
  readonly digest: string
}

export const relistFinished = defineEvent<RelistFinishedData>()({
  name: 'RelistFinished',
  type: 'dev.sluice.relist.finished.v1',
  version: 1,
  about: 'The listing is complete. The log now has the same objects as the source.',
  fields: {
    source: 'Name of the source.',
    count: 'Number of valid objects in force after the listing.',
    digest: 'Sum over the uids and resource versions of these objects, independent of their order.',
  },
})
export type RelistFinished = EventOf<typeof relistFinished>
