import { describe, expect, it } from 'vitest'
import fc from '../../../test/support/fast-check.ts'
import { StatusStore } from './status-store.ts'

const condition = (type: string, status: string, reason = 'Because') => ({
  type,
  status,
  reason,
  message: '',
  observedGeneration: 1,
})

const parent = (name: string, status: string) => ({
  parentRef: { name },
  controllerName: 'c',
  conditions: [condition('Accepted', status)],
})

const times = (value: unknown): string[] =>
  [...JSON.stringify(value).matchAll(/"lastTransitionTime":"(\w+)"/g)].map(([, time]) => time ?? '')

describe('the store of statuses', () => {
  it('sets lastTransitionTime of a new condition to the time of the event', () => {
    const store = new StatusStore()
    expect(times(store.decide('k', { conditions: [condition('Accepted', 'True')] }, 't1'))).toEqual(
      ['t1'],
    )
  })

  it('keeps lastTransitionTime while the status is equal, and publishes nothing if nothing changed', () => {
    const store = new StatusStore()
    store.decide('k', { conditions: [condition('Accepted', 'True')] }, 't1')
    expect(store.decide('k', { conditions: [condition('Accepted', 'True')] }, 't2')).toBeUndefined()
    const reworded = { conditions: [condition('Accepted', 'True', 'Other')] }
    expect(times(store.decide('k', reworded, 't3'))).toEqual(['t1'])
    const turned = { conditions: [condition('Accepted', 'False')] }
    expect(times(store.decide('k', turned, 't4'))).toEqual(['t4'])
  })

  it('identifies list entries by their reference, not by their position', () => {
    const store = new StatusStore()
    store.decide('k', { parents: [parent('a', 'True'), parent('b', 'False')] }, 't1')
    const moved = { parents: [parent('b', 'True'), parent('a', 'True'), parent('c', 'True')] }
    expect(times(store.decide('k', moved, 't2'))).toEqual(['t2', 't1', 't2'])
  })

  it('has a digest of its entries that is the same after a removal or a restore', () => {
    const store = new StatusStore()
    const empty = store.digest
    store.decide('k', { conditions: [condition('Accepted', 'True')] }, 't1')
    const copy = new StatusStore()
    copy.restore(store.entries())
    expect(copy.digest).toBe(store.digest)
    store.drop('k')
    expect(store.digest).toBe(empty)
    expect(store.get('k')).toBeUndefined()
  })

  it('keeps the time of each type until its status changes, and reports whether anything has changed', () => {
    const types = fc.uniqueArray(
      fc.record({
        type: fc.constantFrom('A', 'B', 'C', 'D', 'E', 'F'),
        status: fc.constantFrom('True', 'False'),
        reason: fc.constantFrom('One', 'Two'),
      }),
      { selector: ({ type }) => type, maxLength: 6 },
    )
    fc.assert(
      fc.property(fc.array(types, { maxLength: 8 }), (decisions) => {
        const store = new StatusStore()
        let expected: readonly { type: string; status: string; lastTransitionTime: string }[] = []
        decisions.forEach((decided, at) => {
          const before = expected
          expected = decided.map((one) => {
            const old = before.find(
              ({ type, status }) => type === one.type && status === one.status,
            )
            const lastTransitionTime = old?.lastTransitionTime ?? `t${at}`
            return { ...one, message: '', observedGeneration: 1, lastTransitionTime }
          })
          const conditions = decided.map((one) => ({ ...one, message: '', observedGeneration: 1 }))
          const changed = store.decide('k', { conditions }, `t${at}`)
          expect(store.get('k')).toEqual({ conditions: expected })
          const isSame = at > 0 && JSON.stringify(before) === JSON.stringify(expected)
          expect(changed === undefined).toBe(isSame)
        })
      }),
    )
  })
})
