import { beforeEach, describe, expect, it } from 'vitest'
import type { ObjectRef } from '../../ground/model/names.ts'
import { type Derived, Graph, type Reader, type Stage } from './graph.ts'
import type { ObjectState } from './object-state.ts'

const state = (kind: string, name: string, spec: unknown, labels = {}): ObjectState => ({
  ref: { kind, namespace: 'ns', name },
  uid: `${kind}/${name}`,
  resourceVersion: JSON.stringify(spec),
  generation: 1,
  generationSequence: 1,
  age: { created: 0, order: 0 },
  object: { apiVersion: 'v1', kind, metadata: { labels }, spec },
  refused: undefined,
})

const ref = (kind: string, name: string): ObjectRef => ({ kind, namespace: 'ns', name })

interface LeafSpec {
  readonly shown?: number
  readonly hidden?: number
  readonly joins?: string
}

/** `Leaf.shown` is what others see of a leaf; it joins a group. */
const leafStage: Stage = {
  name: 'leaf',
  kinds: ['Leaf'],
  derive: (self): Derived => {
    const { shown, joins } = (self.object?.spec ?? {}) as LeafSpec
    return {
      value: { shown },
      contributions: joins === undefined ? [] : [['group', joins, self.ref.name]],
    }
  },
}

/** A `Tree` reads one leaf, the size of its group, the leaves with its label, and the weather. */
const treeStage: Stage = {
  name: 'tree',
  kinds: ['Tree'],
  derive: (self, read: Reader): Derived => {
    const { leaf = '' } = (self.object?.spec ?? {}) as { leaf?: string }
    const value = {
      leaf: read.value('leaf', ref('Leaf', leaf)),
      group: read.members('group', self.ref.name),
      labelled: read.index('by-label', self.ref.name).map((found) => found.ref.name),
      weather: read.input('weather'),
    }
    return { value, status: { value } }
  },
}

const byLabel = {
  name: 'by-label',
  kinds: ['Leaf'],
  keys: ({ object }: ObjectState) => Object.keys(object?.metadata.labels ?? {}),
}

let derived: string[]
let graph: Graph

function watched(stage: Stage): Stage {
  return {
    ...stage,
    derive: (self, read) => {
      derived.push(self.ref.name)
      return stage.derive(self, read)
    },
  }
}

beforeEach(() => {
  derived = []
  graph = new Graph([leafStage, treeStage].map(watched), [byLabel])
  for (const name of ['a', 'b']) graph.setObject(state('Leaf', name, { shown: 1, hidden: 1 }))
  graph.setObject(state('Tree', 'oak', { leaf: 'a' }))
  graph.setObject(state('Tree', 'elm', { leaf: 'b' }))
  graph.settle()
  derived = []
})

function afterwards(change: () => void): string[] {
  change()
  graph.settle()
  return derived
}

const statusOf = (name: string) => graph.outputs.takeStatuses().get(`Tree/ns/${name}`)

describe('a changed object in the graph', () => {
  it('is derived together with its readers, and nothing else', () => {
    expect(afterwards(() => graph.setObject(state('Leaf', 'a', { shown: 2 })))).toEqual([
      'a',
      'oak',
    ])
  })

  it('causes no derivation of its readers if its value stays equal', () => {
    const change = () => graph.setObject(state('Leaf', 'a', { shown: 1, hidden: 2 }))
    expect(afterwards(change)).toEqual(['a'])
  })

  it('is not derived by a stage whose inputs have not changed', () => {
    const inputs = ({ object }: ObjectState) => [(object?.spec as LeafSpec | undefined)?.shown]
    graph = new Graph([watched({ ...leafStage, inputs })], [])
    expect(afterwards(() => graph.setObject(state('Leaf', 'a', { shown: 1 })))).toEqual(['a'])
    const hide = () => graph.setObject(state('Leaf', 'a', { shown: 1, hidden: 2 }))
    expect(afterwards(hide)).toEqual(['a'])
    const show = () => graph.setObject(state('Leaf', 'a', { shown: 2, hidden: 2 }))
    expect(afterwards(show)).toEqual(['a', 'a'])
    expect(afterwards(() => graph.removeObject(ref('Leaf', 'a')))).toEqual(['a', 'a'])
    expect(afterwards(show)).toEqual(['a', 'a', 'a'])
  })

  it('causes the derivation of readers that found it missing', () => {
    graph.setObject(state('Tree', 'ash', { leaf: 'new' }))
    graph.settle()
    derived = []
    expect(afterwards(() => graph.setObject(state('Leaf', 'new', { shown: 7 })))).toEqual([
      'new',
      'ash',
    ])
    expect(statusOf('ash')).toMatchObject({ value: { leaf: { shown: 7 } } })
  })

  it('causes no derivation of objects that no longer read it', () => {
    graph.setObject(state('Tree', 'oak', { leaf: 'b' }))
    graph.settle()
    derived = []
    expect(afterwards(() => graph.setObject(state('Leaf', 'a', { shown: 9 })))).toEqual(['a'])
  })

  it('causes the derivation of readers of a relation if a member is added or removed', () => {
    const join = (name: string, hidden: number) =>
      graph.setObject(state('Leaf', name, { shown: 1, hidden, joins: 'oak' }))
    expect(afterwards(() => join('b', 1))).toEqual(['b', 'oak'])
    derived = []
    expect(afterwards(() => join('b', 2))).toEqual(['b'])
    derived = []
    expect(afterwards(() => graph.removeObject(ref('Leaf', 'b')))).toEqual(['elm', 'oak'])
    expect(statusOf('oak')).toMatchObject({ value: { group: [] } })
  })

  it('causes the derivation of readers of an index', () => {
    const change = () => graph.setObject(state('Leaf', 'b', { shown: 1 }, { oak: 'yes' }))
    expect(afterwards(change)).toEqual(['b', 'oak'])
    expect(statusOf('oak')).toMatchObject({ value: { labelled: ['b'] } })
  })

  it('causes the derivation of readers of a fact only if the fact changes', () => {
    expect(afterwards(() => graph.setInput('weather', 'rain'))).toEqual(['elm', 'oak'])
    derived = []
    expect(afterwards(() => graph.setInput('weather', 'rain'))).toEqual([])
  })
})

describe('a deletion from the graph', () => {
  it('removes value, status and contributions of the object', () => {
    graph.setObject(state('Leaf', 'b', { shown: 1, joins: 'oak' }))
    graph.settle()
    graph.outputs.takeStatuses()
    graph.removeObject(ref('Leaf', 'b'))
    graph.removeObject(ref('Tree', 'elm'))
    graph.settle()
    const statuses = graph.outputs.takeStatuses()
    expect(statuses.get('Tree/ns/oak')).toMatchObject({ value: { group: [] } })
    expect(statuses.has('Tree/ns/elm')).toBe(true)
    expect(statuses.get('Tree/ns/elm')).toBeUndefined()
    expect(graph.readsOf('tree', ref('Tree', 'elm'))).toEqual([])
  })

  it('changes nothing if the object is unknown', () => {
    expect(afterwards(() => graph.removeObject(ref('Leaf', 'nobody')))).toEqual([])
  })
})

describe('the reads of a derivation', () => {
  it('are recorded by name', () => {
    expect(graph.readsOf('tree', ref('Tree', 'oak'))).toEqual([
      'fact:weather',
      'index:by-label\0oak',
      'relation:group\0oak',
      'value:leaf:Leaf/ns/a',
    ])
  })

  it('must be from earlier stages', () => {
    const late: Stage = {
      name: 'late',
      kinds: ['Leaf'],
      derive: (_, read) => ({ value: read.value('tree', ref('Tree', 'oak')) }),
    }
    const backwards = new Graph([late, treeStage], [])
    backwards.setObject(state('Leaf', 'a', {}))
    expect(() => backwards.settle()).toThrow('tree is not earlier')
  })

  it('must be from relations that are complete', () => {
    const early: Stage = {
      name: 'early',
      kinds: ['Tree'],
      derive: (_, read) => ({ value: read.count('group', 'oak') }),
    }
    const backwards = new Graph([early, leafStage], [])
    backwards.setObject(state('Tree', 'oak', {}))
    backwards.setObject(state('Leaf', 'a', { joins: 'oak' }))
    expect(() => backwards.settle()).toThrow('relation group is not complete yet')
  })
})

describe('a stage that fails on an object', () => {
  const failing: Stage = {
    name: 'failing',
    kinds: ['Leaf'],
    derive: (self): Derived => {
      if (self.object !== undefined && self.ref.name === 'bad') throw new TypeError('no such field')
      return { status: { refused: self.refused } }
    },
  }

  it('treats the object as refused, with its targets, and continues with other objects', () => {
    const graph = new Graph([failing], [])
    const target = { group: '', kind: 'Tree', name: 'oak' }
    graph.setObject(state('Leaf', 'bad', { targetRefs: [target] }))
    graph.setObject(state('Leaf', 'good', {}))
    graph.settle()
    expect([...graph.outputs.takeStatuses()]).toEqual([
      [
        'Leaf/ns/bad',
        {
          refused: {
            generation: 1,
            problems: [{ path: 'spec', message: expect.stringMatching(/no such field/) }],
            targets: [target],
            appliesTo: [],
          },
        },
      ],
      ['Leaf/ns/good', { refused: undefined }],
    ])
  })
})
