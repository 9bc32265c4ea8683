/** The shapes of events, to check those that come from files which anyone may have written. */

import {
  assertField,
  assertShape,
  type Check,
  DamagedEventError,
  type FieldShape,
  type Fields,
  type Shape,
} from './assert-shape.ts'

const record =
  (shape: Shape): Check =>
  (value, at) =>
    assertShape(value, shape, at)

/** Matches the beginning of a time of RFC 3339, whose years have four digits. */
const timePattern = /^\d{4}-\d\d-\d\dT/

/** @throws DamagedEventError if the fold could not order events by this time */
export function assertTime(time: unknown, at: string): void {
  if (typeof time === 'string' && timePattern.test(time) && !Number.isNaN(Date.parse(time))) return
  throw new DamagedEventError(`${at} is no time`)
}

/** @throws DamagedEventError if a value is not the text of an integer */
function assertInteger(value: unknown, at: string): void {
  if (typeof value === 'string' && /^-?\d{1,40}$/.test(value)) return
  throw new DamagedEventError(`${at} is no integer`)
}

/** Amounts by value. @throws DamagedEventError */
function amounts(value: unknown, at: string): void {
  assertShape(value, {}, at)
  for (const [key, amount] of Object.entries(value as Fields)) assertInteger(amount, `${at}.${key}`)
}

/** Texts, or null, by name. @throws DamagedEventError */
function textsOrNull(value: unknown, at: string): void {
  assertShape(value, {}, at)
  for (const [key, text] of Object.entries(value as Fields)) {
    if (text !== null) assertField(text, 'string', `${at}.${key}`)
  }
}

const name: Shape = { kind: 'string', namespace: 'string', name: 'string' }
const identity: Shape = { ...name, uid: 'string', resourceVersion: 'string' }
const origin = record({ file: 'string', line: 'number' })
const target = record({
  kind: 'string',
  'group?': 'string',
  'namespace?': 'string',
  'name?': 'string',
  'sectionName?': 'string',
  'port?': 'number',
  'matchLabels?': 'object',
})

const conditions: FieldShape = [
  record({
    type: 'string',
    status: 'string',
    reason: 'string',
    message: 'string',
    'lastTransitionTime?': assertTime,
  }),
]
const part = record({ 'conditions?': conditions })
const status = record({
  'conditions?': conditions,
  'parents?': [part],
  'ancestors?': [part],
  'listeners?': [part],
})

const pinnedVersion = record({
  uid: 'string',
  resourceVersion: 'string',
  generation: 'number',
  age: record({ created: 'number', order: 'number' }),
  object: 'object',
})

const judgedObject = record({ ...name, 'uid?': 'string', 'resourceVersion?': 'string' })
const unmet = record({ condition: 'string', 'gateway?': 'string', message: 'string' })
const changedRequests = record({
  kinds: ['string'],
  cause: 'string',
  from: 'string',
  to: 'string',
  count: 'number',
  examples: ['string'],
})
const judgedSample = record({
  requests: 'number',
  refused: 'number',
  undecided: 'number',
  digest: 'string',
  'from?': assertTime,
  'to?': assertTime,
  'limits?': 'string',
})

/** A number of proxies, or their share. @throws DamagedEventError */
function step(value: unknown, at: string): void {
  assertField(value, typeof value === 'number' ? 'number' : 'string', at)
}

const stream: Shape = {
  proxy: 'string',
  'gateway?': 'string',
  'stream?': 'string',
  'replica?': 'string',
}
const digests: Shape = {
  replica: 'string',
  position: 'number',
  desired: 'string',
  status: 'string',
  foldVersion: 'string',
}

/** Fields of the data of each event type. */
const dataShapes: Readonly<Record<string, Shape>> = {
  'dev.sluice.resource.applied.v1': {
    ...identity,
    generation: 'number',
    object: 'object',
    'origin?': origin,
    'programmed?': record({ generation: 'number', addresses: ['string'] }),
  },
  'dev.sluice.resource.deleted.v1': { ...identity, cause: 'string' },
  'dev.sluice.resource.refused.v1': {
    ...identity,
    generation: 'number',
    problems: [record({ path: 'string', message: 'string' })],
    'origin?': origin,
    'targets?': [target],
    'appliesTo?': ['string'],
  },
  'dev.sluice.relist.started.v1': { source: 'string', scope: ['string'], 'unread?': ['string'] },
  'dev.sluice.relist.finished.v1': { source: 'string', count: 'number', digest: 'string' },
  'dev.sluice.conditions.decided.v1': {
    ...name,
    generation: 'number',
    status,
    'causes?': ['number'],
    'moreCauses?': 'boolean',
  },
  'dev.sluice.desired.published.v1': {
    version: 'number',
    digest: 'string',
    statusDigest: 'string',
    upserted: 'number',
    removed: 'number',
    'keys?': ['string'],
    foldVersion: 'string',
    'recordedSince?': 'number',
  },
  'dev.sluice.proxy.connected.v1': { ...stream, 'address?': 'string', 'version?': 'string' },
  'dev.sluice.proxy.disconnected.v1': { ...stream, reason: 'string' },
  'dev.sluice.config.acked.v1': { ...stream, sequence: 'number', 'refused?': ['string'] },
  'dev.sluice.config.rejected.v1': {
    ...stream,
    sequence: 'number',
    key: 'string',
    code: 'string',
    message: 'string',
  },
  'dev.sluice.lease.acquired.v1': { holder: 'string', epoch: 'number', 'keyName?': 'string' },
  'dev.sluice.lease.lost.v1': { holder: 'string', epoch: 'number' },
  'dev.sluice.digest.taken.v1': digests,
  'dev.sluice.digest.differed.v1': {
    ...digests,
    other: 'string',
    otherDesired: 'string',
    otherStatus: 'string',
  },
  'dev.sluice.timer.fired.v1': { timer: 'string', dueAt: assertTime },
  'dev.sluice.jwks.fetched.v1': { uri: 'string', digest: 'string', keySet: 'object' },
  'dev.sluice.deployment.applied.v1': {
    namespace: 'string',
    name: 'string',
    uid: 'string',
    changes: [record({ kind: 'string', name: 'string', change: 'string' })],
  },
  'dev.sluice.deployment.failed.v1': {
    namespace: 'string',
    name: 'string',
    uid: 'string',
    message: 'string',
  },
  'dev.sluice.definitions.observed.v1': { versions: ['string'] },
  'dev.sluice.apikeys.changed.v1': {
    namespace: 'string',
    entries: textsOrNull,
    reason: 'string',
    author: 'string',
  },
  'dev.sluice.pin.set.v1': {
    to: 'number',
    'only?': [record(name)],
    objects: [record({ ...name, 'version?': pinnedVersion })],
    'part?': record({ pin: 'string', number: 'number', count: 'number' }),
    'untilChanged?': 'boolean',
    'until?': assertTime,
    reason: 'string',
    author: 'string',
  },
  'dev.sluice.pin.lifted.v1': { reason: 'string', author: 'string' },
  'dev.sluice.protection.set.v1': { mode: 'string' },
  'dev.sluice.change.passed.v1': {
    changes: [[judgedObject]],
    'unmet?': [unmet],
    'groups?': [changedRequests],
    'sample?': judgedSample,
  },
  'dev.sluice.change.held.v1': {
    objects: [judgedObject],
    unmet: [unmet],
    groups: [changedRequests],
    sample: judgedSample,
  },
  'dev.sluice.change.approved.v1': {
    'held?': 'number',
    'emergency?': 'boolean',
    reason: 'string',
    author: 'string',
  },
  'dev.sluice.change.rejected.v1': { held: 'number', reason: 'string', author: 'string' },
  'dev.sluice.rollout.started.v1': {
    objects: [judgedObject],
    plans: [
      record({ gateway: 'string', steps: [step], holdSeconds: 'number', analysis: ['string'] }),
    ],
  },
  'dev.sluice.rollout.skipped.v1': { objects: [judgedObject] },
  'dev.sluice.rollout.stepped.v1': { rollout: 'number', step: 'number', proxies: ['string'] },
  'dev.sluice.rollout.paused.v1': { rollout: 'number', reason: 'string', 'author?': 'string' },
  'dev.sluice.rollout.resumed.v1': { rollout: 'number', reason: 'string', author: 'string' },
  'dev.sluice.rollout.ended.v1': {
    rollout: 'number',
    outcome: 'string',
    reason: 'string',
    'author?': 'string',
  },
  'dev.sluice.tools.observed.v1': {
    backend: 'string',
    target: 'string',
    list: 'string',
    proxy: 'string',
    isApproved: 'boolean',
    items: [record({ name: 'string', digest: 'string', 'definition?': 'string' })],
    removed: ['string'],
  },
  'dev.sluice.tools.approved.v1': {
    backend: 'string',
    target: 'string',
    list: 'string',
    items: textsOrNull,
    reason: 'string',
    author: 'string',
  },
  'dev.sluice.sessions.ended.v1': {
    issuer: 'string',
    entries: [record({ id: 'string', at: 'number', until: 'number' })],
    reason: 'string',
    author: 'string',
  },
  'dev.sluice.budget.defined.v1': {
    budget: 'string',
    name: 'string',
    generation: 'number',
    unit: 'string',
    amount: assertInteger,
    overrides: amounts,
    window: record({ type: 'string', unit: 'string', timeZone: 'string' }),
    'softLimits?': ['number'],
  },
  'dev.sluice.budget.opened.v1': { budget: 'string', window: 'number', 'endsAt?': assertTime },
  'dev.sluice.budget.granted.v1': {
    holder: 'string',
    grants: [
      record({
        budget: 'string',
        window: 'number',
        'value?': 'string',
        'amount?': assertInteger,
        'share?': 'number',
        'generation?': 'number',
      }),
    ],
  },
  'dev.sluice.budget.charged.v1': {
    holder: 'string',
    sequence: 'number',
    charges: [
      record({
        budget: 'string',
        window: 'number',
        value: 'string',
        'charged?': assertInteger,
        'returned?': assertInteger,
        'requests?': 'number',
        'drained?': assertInteger,
      }),
    ],
  },
  'dev.sluice.budget.recalled.v1': { budget: 'string', window: 'number', value: 'string' },
  'dev.sluice.budget.released.v1': { holder: 'string' },
  'dev.sluice.budget.adjusted.v1': {
    budget: 'string',
    window: 'number',
    value: 'string',
    amount: assertInteger,
    reason: 'string',
    'author?': 'string',
  },
  'dev.sluice.budget.warned.v1': {
    budget: 'string',
    window: 'number',
    value: 'string',
    percent: 'number',
    spent: assertInteger,
    limit: assertInteger,
  },
  'dev.sluice.budget.notified.v1': {
    warning: 'string',
    budget: 'string',
    outcome: 'string',
    'reason?': 'string',
  },
}

/** The parts of an object that every kind has. */
const anyObject: Shape = {
  apiVersion: 'string',
  kind: 'string',
  metadata: record({ name: 'string', 'namespace?': 'string' }),
}

/** Checks all fields of the envelope and the data of an event. @throws DamagedEventError that names the field */
export function assertEvent(event: {
  readonly type: string
  readonly time: unknown
  readonly data: unknown
}): void {
  assertShape(
    event,
    { source: 'string', 'id?': 'string', 'epoch?': 'number', time: assertTime },
    'event',
  )
  assertShape(event.data, dataShapes[event.type] ?? {}, 'event.data')
  if (event.type !== 'dev.sluice.resource.applied.v1') return
  const { object } = event.data as { readonly object: Fields }
  const at = 'event.data.object'
  assertShape(object, anyObject, at)
  const { creationTimestamp } = object.metadata as Fields
  if (creationTimestamp === undefined || creationTimestamp === null) return
  assertTime(creationTimestamp, `${at}.metadata.creationTimestamp`)
}
