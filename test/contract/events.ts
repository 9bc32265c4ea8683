import {
  createEvent,
  messageId,
  type ResourceApplied,
  resourceApplied,
} from '../../events/index.ts'
import { subjectOf } from '../../src/control/log/subjects.ts'

/** An event about version `version` of the route `name`; `padding` makes it longer. */
export function routeApplied(name: string, version = 1, padding = ''): ResourceApplied {
  const uid = `uid-${name}`
  const context = { source: '/sluice/test', time: '2026-01-02T03:04:05.000Z', epoch: 0 }
  return createEvent(resourceApplied, context, {
    id: messageId(0, uid, String(version), resourceApplied.type),
    subject: routeSubject(name),
    data: {
      kind: 'HTTPRoute',
      namespace: 'shop',
      name,
      uid,
      resourceVersion: String(version),
      generation: version,
      object: { metadata: { name }, spec: { hostnames: [`${name}.example`] }, padding },
    },
  })
}

export function routeSubject(name: string): string {
  return subjectOf({ cluster: 'test', kind: 'HTTPRoute', namespace: 'shop', name })
}

/** The batch with a number that processes append which tests kill. */
export const appendedBatch = (batch: number): readonly ResourceApplied[] =>
  Array.from({ length: 10 }, (_, index) => routeApplied(`b${batch}-${index}`))
