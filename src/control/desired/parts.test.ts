import { describe, expect, it } from 'vitest'
import fc from '../../../test/support/fast-check.ts'
import { Graph, type Reader, type Stage } from './graph.ts'
import type { ObjectState } from './object-state.ts'

interface Item {
  readonly inputs: readonly string[]
  readonly text: string
}

const ref = { kind: 'List', namespace: 'ns', name: 'shopping' }

const listOf = (items: readonly Item[], generation = 1): ObjectState => ({
  ref,
  uid: 'u',
  resourceVersion: `${generation}`,
  generation,
  generationSequence: 1,
  age: { created: 0, order: 0 },
  object: {
    apiVersion: 'v1',
    kind: ref.kind,
    metadata: {},
    spec: JSON.parse(JSON.stringify(items)),
  },
  refused: undefined,
})

/** Texts of the items that were derived. */
let derived: string[] = []

function deriveItem(read: Reader, { inputs, text }: Item): readonly unknown[] {
  derived.push(text)
  if (text === 'broken') throw new TypeError('no such field')
  return [text, ...inputs.map((name) => read.input(name))]
}

/** Derives each item as a part, and reads an input after each. */
const listStage: Stage = {
  name: 'list',
  kinds: ['List'],
  derive: ({ object }, read) => ({
    value: ((object?.spec ?? []) as readonly Item[]).map((item) => [
      read.part(deriveItem, item),
      read.input('always'),
    ]),
  }),
}

function settled(graph: Graph): unknown {
  derived = []
  graph.settle()
  return graph.valueOf('list', ref)
}

const names = ['a', 'b', 'always']
const item = fc.constantFrom<Item>(
  { inputs: [], text: 'x' },
  { inputs: ['a'], text: 'y' },
  { inputs: ['a', 'b', 'a'], text: 'z' },
  { inputs: ['b'], text: 'broken' },
)
const change = fc.oneof(
  fc.array(item, { maxLength: 4 }).map((items) => (graph: Graph) => graph.setObject(listOf(items))),
  fc.tuple(fc.constantFrom(...names), fc.nat(2)).map(
    ([name, value]) =>
      (graph: Graph) =>
        graph.setInput(name, value),
  ),
)

describe('a part of a derivation', () => {
  it('is derived again only if its inputs change', () => {
    const graph = new Graph([listStage], [])
    graph.setObject(
      listOf([
        { inputs: ['a'], text: 'x' },
        { inputs: [], text: 'y' },
      ]),
    )
    settled(graph)
    expect(derived).toEqual(['x', 'y'])
    graph.setObject(
      listOf(
        [
          { inputs: ['a'], text: 'x' },
          { inputs: [], text: 'z' },
        ],
        2,
      ),
    )
    expect(settled(graph)).toEqual([
      [['x', undefined], undefined],
      [['z'], undefined],
    ])
    expect(derived).toEqual(['z'])
  })

  it('is derived again if something changes that it read before it was reused', () => {
    const graph = new Graph([listStage], [])
    graph.setObject(listOf([{ inputs: ['a'], text: 'x' }]))
    settled(graph)
    graph.setObject(
      listOf(
        [
          { inputs: ['a'], text: 'x' },
          { inputs: [], text: 'y' },
        ],
        2,
      ),
    )
    settled(graph)
    expect(derived).toEqual(['y'])
    graph.setInput('a', 1)
    expect(settled(graph)).toEqual([
      [['x', 1], undefined],
      [['y'], undefined],
    ])
    expect(graph.readsOf('list', ref)).toEqual(['fact:a', 'fact:always'])
  })

  it('has the result of a new graph after any changes', () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 20 }), (changes) => {
        const graph = new Graph([listStage], [])
        changes.forEach((apply, at) => {
          apply(graph)
          const value = settled(graph)
          const anew = new Graph([listStage], [])
          for (const earlier of changes.slice(0, at + 1)) earlier(anew)
          expect(value).toEqual(settled(anew))
          expect(graph.readsOf('list', ref)).toEqual(anew.readsOf('list', ref))
        })
      }),
    )
  })

  it('cannot request key sets, which would be lost if it is reused', () => {
    const request = { uri: 'https://keys.example', cacheMs: 1 }
    const derive = (read: Reader) => read.requestKeySet(request as never)
    const stage: Stage = {
      name: 'list',
      kinds: ['List'],
      derive: ({ object }, read) => {
        if (object !== undefined) read.part(derive)
        return {}
      },
    }
    const errors: unknown[] = []
    const catching: Stage = {
      ...stage,
      derive: (self, read) => {
        if (self.refused !== undefined) errors.push(self.refused.problems[0]?.message)
        return stage.derive(self, read)
      },
    }
    const graph = new Graph([catching], [])
    graph.setObject(listOf([]))
    graph.settle()
    expect(errors).toEqual([expect.stringContaining('cannot request key sets')])
  })
})
