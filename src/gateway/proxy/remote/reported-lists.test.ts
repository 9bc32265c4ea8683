import { expect, it } from 'vitest'
import type { ListReport } from '../../../ground/model/mcp-lists.ts'
import { ReportedLists } from './reported-lists.ts'

const item = (name: string, digest: string) => ({ name, digest })
const report = (change: Partial<ListReport>): ListReport => ({
  backend: 'ns/b',
  target: 't',
  list: 'tools',
  pinning: 'Off',
  items: [],
  removed: [],
  isComplete: false,
  isFirst: false,
  isLast: true,
  ...change,
})

it('passes on what no other worker has reported, and keeps it until a controller is connected', () => {
  const lists = new ReportedLists()
  const whole = report({ items: [item('a', '1'), item('b', '1')], isComplete: true })
  expect(lists.take(whole)).toEqual(whole)
  expect(lists.take(whole)).toBeUndefined()
  // A worker that has started later sees another list.
  const later = report({ items: [item('a', '2')], isComplete: true })
  expect(lists.take(later)).toEqual(
    report({ items: [item('a', '2')], removed: ['b'], isComplete: false }),
  )
  expect(lists.take(report({ removed: ['b', 'a'] }))).toEqual(report({ removed: ['a'] }))
  lists.wait(whole)
  expect(lists.takeWaiting()).toEqual([whole])
  expect(lists.takeWaiting()).toEqual([])
})
