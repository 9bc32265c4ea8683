import { expect, it } from 'vitest'
import { FoldStory } from '../../../test/support/fold-story.ts'
import { gateway, httpRoute } from '../../../test/support/manifests.ts'
import { createGraph } from '../desired/derivations.ts'
import { Fold, type FoldSnapshot } from './fold.ts'

/** Returns parts of a route's object and of the resource that proxies receive, to compare them by identity. */
function partsOf(fold: Fold, name: string) {
  const key = `HTTPRoute/default/${name}`
  const spec = fold.graph.object(key)?.object?.spec as { parentRefs: object } | undefined
  const resource = fold.resources().find((one) => one.resource.key === `route/${key}/0`)?.resource
  if (resource?.type !== 'route') throw new Error(`${name} has no resource`)
  return { parentRefs: spec?.parentRefs, backends: resource.backends }
}

it('objects of one kind share equal parts, also after a restart', () => {
  const story = new FoldStory()
  const backendRefs = [{ name: 'shop', port: 80 }]
  const rule = (path: string) => ({
    matches: [{ path: { type: 'PathPrefix', value: path } }],
    backendRefs,
  })
  for (const object of [
    gateway(8080),
    httpRoute('first', { rules: [rule('/1')] }),
    httpRoute('second', { rules: [rule('/2')] }),
  ]) {
    story.apply(JSON.parse(JSON.stringify(object)))
  }
  const restored = new Fold(createGraph({ checkRegex: () => undefined }))
  restored.restore(JSON.parse(JSON.stringify(story.fold.snapshot())) as FoldSnapshot)
  for (const fold of [story.fold, restored]) {
    const [first, second] = [partsOf(fold, 'first'), partsOf(fold, 'second')]
    expect(second.parentRefs).toBe(first.parentRefs)
    expect(second.backends).toBe(first.backends)
  }
})

it('sharing does not change what is derived after a restart', () => {
  const story = new FoldStory()
  const { auth, tls } = {
    auth: { secretRef: { name: 'missing' } },
    tls: { caCertificateRefs: [{ name: 'missing' }] },
  }
  const backend = (name: string, policies?: object) => ({
    apiVersion: 'sluice.dev/v1alpha1',
    kind: 'GatewayBackend',
    metadata: { name },
    spec: { static: { host: 'a.example', port: 80 }, ...(policies && { policies }) },
  })
  story.apply(backend('first', { auth, tls }), backend('second'))
  // The restored state does not have the object that was seen last.
  story.delete('GatewayBackend', 'second')
  const restored = new Fold(createGraph({ checkRegex: () => undefined }))
  restored.restore(JSON.parse(JSON.stringify(story.fold.snapshot())) as FoldSnapshot)
  const known = story.events.length
  const inOtherOrder = JSON.stringify(backend('third', { tls, auth }))
  story.apply(JSON.parse(inOtherOrder))
  for (const recorded of story.events.slice(known)) {
    const object = JSON.parse(inOtherOrder)
    const { event } = recorded
    restored.apply({ ...recorded, event: { ...event, data: { ...event.data, object } } as never })
  }
  const message = expect.stringMatching(/tls.*missing.*auth.*missing/)
  expect(story.status('GatewayBackend', 'third')).toMatchObject({ conditions: [{ message }] })
  expect(restored.statuses()).toEqual(story.fold.statuses())
  expect(restored.digests()).toEqual(story.fold.digests())
})
