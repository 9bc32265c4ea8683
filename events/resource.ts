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
  about: 'An object was seen for the first time, or in a new version. It is valid and redacted.',
  fields: {
    kind: 'Kubernetes kind.',
    namespace: 'Namespace; empty for cluster-scoped kinds.',
    name: 'Name.',
    uid: 'Identity of this incarnation: deleting and creating again gives another uid.',
    resourceVersion: 'Version of the whole object; opaque, different after every change.',
    generation: 'Rises when the desired part of the object changes; conditions refer to it.',
    object:
      'The object without status, secret values, managedFields and the identity fields that stand beside it. A Secret carries `facts` instead of data, a Pod instead of spec.',
    origin: 'File and line, where a file was the source.',
    programmed:
      'Of a Gateway or ListenerSet that this log did not know, and that its status in the cluster calls programmed: that generation, and its addresses. It holds until proxies answer, or have been away for 30 s.',
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
  about: 'An object is gone; its last version and any refused version no longer count.',
  fields: {
    kind: 'Kubernetes kind.',
    namespace: 'Namespace; empty for cluster-scoped kinds.',
    name: 'Name.',
    uid: 'The incarnation that is gone.',
    resourceVersion: 'The last version that was seen.',
    cause: '`watch`: the deletion was seen; `relist`: a listing no longer had it.',
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
    'A version of an object is invalid. The last valid version, where there is one, stays in force.',
  fields: {
    kind: 'Kubernetes kind.',
    namespace: 'Namespace; empty for cluster-scoped kinds.',
    name: 'Name.',
    uid: 'Identity; kept when the object becomes valid later.',
    resourceVersion: 'Version of the refused content.',
    generation: 'Generation that the refused content would have; conditions refer to it.',
    problems: 'Each with the path of the field and a message; never a value.',
    origin: 'File and line, where a file was the source.',
    targets:
      'What it was meant for: targets of a policy, so that one which cannot be enforced fails closed; parents of a route, so that its status has a place.',
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
  about: 'A source lists everything it has; the differences to what the log knows follow.',
  fields: {
    source: 'Name of the source, `files` or `kubernetes`.',
    scope: 'What is listed: paths, or kinds.',
    unread:
      'Kinds that a setting leaves out; there in every listing of a whole cluster, absent elsewhere.',
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
  about: 'The listing is complete: what the log now knows equals what the source has.',
  fields: {
    source: 'Name of the source.',
    count: 'Number of valid objects in force after the listing.',
    digest: 'Sum over their uids and resource versions; order does not matter.',
  },
})
export type RelistFinished = EventOf<typeof relistFinished>
