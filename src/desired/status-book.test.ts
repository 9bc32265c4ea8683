import { describe, expect, it } from 'vitest'
import { StatusBook } from './status-book.ts'

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

describe('the book of statuses', () => {
  it('stamps a new condition with the time of the event', () => {
    const book = new StatusBook()
    expect(times(book.decide('k', { conditions: [condition('Accepted', 'True')] }, 't1'))).toEqual([
      't1',
    ])
  })

  it('keeps lastTransitionTime while the status is equal, and publishes nothing unchanged', () => {
    const book = new StatusBook()
    book.decide('k', { conditions: [condition('Accepted', 'True')] }, 't1')
    expect(book.decide('k', { conditions: [condition('Accepted', 'True')] }, 't2')).toBeUndefined()
    const reworded = { conditions: [condition('Accepted', 'True', 'Other')] }
    expect(times(book.decide('k', reworded, 't3'))).toEqual(['t1'])
    const turned = { conditions: [condition('Accepted', 'False')] }
    expect(times(book.decide('k', turned, 't4'))).toEqual(['t4'])
  })

  it('identifies list entries by what they refer to, not by their position', () => {
    const book = new StatusBook()
    book.decide('k', { parents: [parent('a', 'True'), parent('b', 'False')] }, 't1')
    const moved = { parents: [parent('b', 'True'), parent('a', 'True'), parent('c', 'True')] }
    expect(times(book.decide('k', moved, 't2'))).toEqual(['t2', 't1', 't2'])
  })

  it('has the digest of what it holds, also after a removal and from a snapshot', () => {
    const book = new StatusBook()
    const empty = book.digest
    book.decide('k', { conditions: [condition('Accepted', 'True')] }, 't1')
    const copy = new StatusBook()
    copy.restore(book.entries())
    expect(copy.digest).toBe(book.digest)
    book.decide('k', undefined, 't2')
    expect(book.digest).toBe(empty)
    expect(book.get('k')).toBeUndefined()
  })
})
