import { describe, expect, it } from 'vitest'
import {
  createEvent,
  resourceApplied,
  resourceDeleted,
  resourceRefused,
} from '../../../events/index.ts'
import { createGraph } from '../desired/derivations.ts'
import type { ObjectState } from '../desired/object-state.ts'
import { Fold } from './fold.ts'

const ref = { kind: 'GatewayBackend', namespace: 'ns', name: 'main' }
const key = 'GatewayBackend/ns/main'

/** The events of one resource. */
class Story {
  readonly fold = new Fold(createGraph({ checkRegex: () => undefined }))
  #position = 0

  applied(uid: string, resourceVersion: string, generation: number, host: string): this {
    const spec = { static: { host, port: 80 } }
    const object = { apiVersion: 'sluice.dev/v1alpha1', kind: ref.kind, metadata: {}, spec }
    const data = { ...ref, uid, resourceVersion, generation, object }
    return this.#fold((context, content) =>
      createEvent(resourceApplied, context, { ...content, data }),
    )
  }

  refused(uid: string, resourceVersion: string, generation: number): this {
    const problems = [{ path: 'spec.static', message: 'wrong' }]
    const data = { ...ref, uid, resourceVersion, generation, problems }
    return this.#fold((context, content) =>
      createEvent(resourceRefused, context, { ...content, data }),
    )
  }

  deleted(uid: string): this {
    const data = { ...ref, uid, resourceVersion: 'gone', cause: 'watch' } as const
    return this.#fold((context, content) =>
      createEvent(resourceDeleted, context, { ...content, data }),
    )
  }

  get state(): ObjectState | undefined {
    return this.fold.graph.object(key)
  }

  get host(): string | undefined {
    const spec = this.state?.object?.spec as { static: { host: string } } | undefined
    return spec?.static.host
  }

  #fold(
    make: (
      context: { source: string; time: string; epoch: number },
      content: { id: string; subject: string },
    ) => Parameters<Fold['apply']>[0]['event'],
  ): this {
    const position = ++this.#position
    const time = new Date(Date.UTC(2026, 0, 1, 0, position)).toISOString()
    const context = { source: '/test', time, epoch: 0 }
    this.fold.apply({ position, event: make(context, { id: `${position}`, subject: key }) })
    return this
  }
}

describe('the actor of a resource', () => {
  it('ignores a version with a known uid and resourceVersion', () => {
    const story = new Story().applied('u1', 'v1', 1, 'a')
    const state = story.state
    story.fold.takeChange()
    story.applied('u1', 'v1', 1, 'b')
    expect(story.state).toBe(state)
    expect(story.fold.takeChange().delta.upserted).toEqual([])
  })

  it('keeps its age and generation position if only metadata changes', () => {
    const story = new Story().applied('u1', 'v1', 1, 'a').applied('u1', 'v2', 1, 'a')
    expect(story.state).toMatchObject({ resourceVersion: 'v2', generationSequence: 1 })
    story.applied('u1', 'v3', 2, 'b')
    expect(story.state).toMatchObject({ generationSequence: 3, age: { order: 1 } })
  })

  it('has no valid object until its first valid version', () => {
    const story = new Story().refused('u1', 'v1', 1)
    expect(story.state).toMatchObject({ object: undefined, refused: { generation: 1 } })
    story.applied('u1', 'v2', 2, 'a')
    expect(story.state).toMatchObject({ generation: 2, generationSequence: 2, refused: undefined })
    expect(story.state?.age.order).toBe(1)
  })

  it('keeps the last valid version in force while a later one is refused', () => {
    const story = new Story().applied('u1', 'v1', 1, 'a').refused('u1', 'v2', 2)
    expect(story.host).toBe('a')
    expect(story.state).toMatchObject({ generation: 1, refused: { generation: 2 } })
    story.applied('u1', 'v3', 3, 'b')
    expect(story.host).toBe('b')
    expect(story.state?.refused).toBeUndefined()
  })

  it('is removed by a deletion, and is younger when it is created again', () => {
    const story = new Story().applied('u1', 'v1', 1, 'a').deleted('u1')
    expect(story.state).toBeUndefined()
    story.applied('u2', 'v1', 1, 'b')
    expect(story.state).toMatchObject({ uid: 'u2', age: { order: 3 } })
  })

  it('ignores a late deletion event of an earlier incarnation', () => {
    const story = new Story().applied('u1', 'v1', 1, 'a').applied('u2', 'v1', 1, 'b').deleted('u1')
    expect(story.host).toBe('b')
  })

  it('does not keep the valid version of an earlier incarnation if the next one is refused', () => {
    const story = new Story().applied('u1', 'v1', 1, 'a').refused('u2', 'v1', 1)
    expect(story.state).toMatchObject({ uid: 'u2', object: undefined })
    expect(story.fold.resources()).toEqual([])
  })
})
