import { expect, it } from 'vitest'
import { RequestTally } from '../../../past/what-if/groups.ts'
import { reportMarkdown } from './markdown.ts'

const none = { added: [], removed: [], changed: [] }

it('fits into a comment of GitHub, whatever the report says', () => {
  const tally = new RequestTally()
  for (let n = 0; n < 900; n++) {
    const path = `/${n}/${'`'.repeat(n)}${'x'.repeat(5_000)}`
    const example = { id: `${n}`, time: '2026-01-31T12:00:00Z', method: 'GET', host: 'a', path }
    const change = { kinds: ['route' as const], cause: `object ${n}`, from: 'a', to: 'b' }
    tally.changed(change, example)
    tally.undecided(`reason ${n}`, example)
  }
  const lines = reportMarkdown({
    requests: tally.resultOfRecords(),
    hasRequests: true,
    objects: none,
    resources: none,
    conditions: [],
    conflicts: [],
    refused: [],
    overridden: [],
  })
  const text = lines.join('\n')
  expect(text.length).toBeLessThan(60_000)
  expect(text.match(/^…$/gm)?.length).toBe(2)
  expect(text).toContain('<details><summary>Requests that change (900)</summary>')
  expect(text).toContain('<details><summary>Undecided requests (900)</summary>')
})
