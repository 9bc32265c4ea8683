import { defineEvent } from './envelope.ts'
import type { ResourceName } from './resource.ts'

/** A version of an object that was judged; without `uid` and `resourceVersion`, its deletion. */
export interface JudgedObject extends ResourceName {
  readonly uid?: string
  readonly resourceVersion?: string
}

/** A condition of a `changeProtection` that a change does not meet. */
export interface UnmetCondition {
  /** Such as `maxRefused`, or `judged` if the change could not be judged. */
  readonly condition: string
  /** `namespace/name` of the Gateway whose condition it is. */
  readonly gateway?: string
  readonly message: string
}

/** Recorded requests that the same cause changes in the same way. */
export interface ChangedRequests {
  readonly kinds: readonly string[]
  readonly cause: string
  readonly from: string
  readonly to: string
  readonly count: number
  /** A few of them, such as `GET shop.example/orders (order-4711)`. */
  readonly examples: readonly string[]
}

/** The recorded requests on which a change was judged. */
export interface JudgedSample {
  readonly requests: number
  readonly refused: number
  readonly undecided: number
  /** SHA-256 of the ids and times of the requests, in hex. */
  readonly digest: string
  /** Times of the first and the last request; omitted if there is none. */
  readonly from?: string
  readonly to?: string
  /** What the sample cannot show; omitted if it has all requests. */
  readonly limits?: string
}

interface Verdict {
  readonly unmet: readonly UnmetCondition[]
  readonly groups: readonly ChangedRequests[]
  readonly sample: JudgedSample
}

export interface ChangePassedData extends Partial<Verdict> {
  readonly changes: readonly (readonly JudgedObject[])[]
}

const verdictFields = {
  unmet: 'The conditions that are not met, each with its Gateway.',
  groups: 'The recorded requests that change, the worst first; at most ten groups.',
  sample: 'The recorded requests on which the change was judged.',
}

export const changePassed = defineEvent<ChangePassedData>()({
  name: 'ChangePassed',
  type: 'dev.sluice.change.passed.v1',
  version: 1,
  about:
    'Changes that waited under `changeProtection` were judged, and take effect. In mode Warn, `unmet` has the conditions that they do not meet.',
  fields: {
    changes:
      'The changes. Each is a list of objects that take effect together, if no newer version of them was observed.',
    ...verdictFields,
  },
})

export interface ChangeHeldData extends Verdict {
  readonly objects: readonly JudgedObject[]
}

export const changeHeld = defineEvent<ChangeHeldData>()({
  name: 'ChangeHeld',
  type: 'dev.sluice.change.held.v1',
  version: 1,
  about:
    'A change does not meet the conditions of `changeProtection` in mode Hold. The versions that are in force stay until it is approved (`sluice approve`), or until a newer version meets the conditions.',
  fields: {
    objects: 'The objects of the change. An object without `resourceVersion` was deleted.',
    ...verdictFields,
  },
})

export interface ChangeApprovedData {
  readonly held?: number
  readonly emergency?: true
  readonly reason: string
  readonly author: string
}

export const changeApproved = defineEvent<ChangeApprovedData>()({
  name: 'ChangeApproved',
  type: 'dev.sluice.change.approved.v1',
  version: 1,
  about: 'An operator approved a held change or, in an emergency, everything that waits.',
  fields: {
    held: 'Position of the ChangeHeld event; omitted in an emergency.',
    emergency:
      'Whether everything that waits takes effect: held, rejected, not judged yet or in a rollout, but not what was rolled back.',
    reason: 'The reason that the operator gave.',
    author: 'Operator, or the object whose annotation approves the change.',
  },
})

export interface ChangeRejectedData {
  readonly held: number
  readonly reason: string
  readonly author: string
}

export const changeRejected = defineEvent<ChangeRejectedData>()({
  name: 'ChangeRejected',
  type: 'dev.sluice.change.rejected.v1',
  version: 1,
  about:
    'An operator rejected a held change. It waits until its manifests change again, and only an emergency can put it in force.',
  fields: {
    held: 'Position of the ChangeHeld event.',
    reason: 'The reason that the operator gave.',
    author: 'Operator, or the object whose annotation rejects the change.',
  },
})

export interface ProtectionSetData {
  readonly mode: 'Off' | 'Warn' | 'Hold'
}

export const protectionSet = defineEvent<ProtectionSetData>()({
  name: 'ProtectionSet',
  type: 'dev.sluice.protection.set.v1',
  version: 1,
  about:
    'A gateway was started with another value of `--change-protection` than before. It applies to Gateways whose parameters have no `changeProtection`.',
  fields: { mode: 'The mode: Off, Warn or Hold.' },
})
