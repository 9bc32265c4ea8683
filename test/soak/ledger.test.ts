import { beforeEach, describe, expect, it } from 'vitest'
import { Accounts } from './accounts.ts'
import { Ledger, type Outcome } from './ledger.ts'
import type { Bills } from './vendors.ts'

const failed: Outcome = { kind: 'failed', text: 'status 503', received: '' }
const foreign: Outcome = {
  kind: 'wrong',
  invariant: 'isolation',
  text: 'carries tag-9-',
  received: 'x-tag: tag-9-',
}

let ledger: Ledger
beforeEach(() => {
  ledger = new Ledger()
})
const run = (outcome: Outcome | undefined, ways = ['gateway', 'nginx']) =>
  ledger.exchange('tagged', ways, 'tag-1-', () => Promise.resolve(outcome))

describe('the ledger of a soak', () => {
  it('counts exchanges that are as they must be', async () => {
    await run(undefined)
    expect(ledger.counts.get('tagged')).toMatchObject({ done: 1, excused: 0 })
    expect(ledger.violation).toBeUndefined()
  })

  it('reports a failure that no fault explains', async () => {
    await run(failed)
    expect(ledger.violation).toMatchObject({
      invariant: 'progress',
      exchange: 'tag-1- (tagged by way of gateway, nginx)',
      text: 'status 503',
    })
  })

  it('excuses a failure during a fault of its way and shortly after it, but not of another way', async () => {
    const disturbance = ledger.begin('restart nginx', (way) => way === 'nginx')
    await run(failed)
    ledger.end(disturbance)
    await run(failed)
    expect(ledger.counts.get('tagged')?.excused).toBe(2)
    expect(ledger.violation).toBeUndefined()
    await run(failed, ['gateway', 'haproxy'])
    expect(ledger.violation).toBeDefined()
  })

  it('never excuses foreign bytes', async () => {
    ledger.begin('kill-worker', () => true)
    await run(foreign)
    expect(ledger.violation).toMatchObject({ invariant: 'isolation', bytes: 'x-tag: tag-9-' })
  })

  it('reports an exchange that throws with the cause of its error', async () => {
    const error = new Error('fetch failed', { cause: new Error('socket hang up') })
    await ledger.exchange('tagged', [], 'tag-1-', () => Promise.reject(error))
    expect(ledger.violation?.text).toBe('Error: fetch failed: Error: socket hang up')
  })
})

describe('the accounts of a soak', () => {
  let bills: Bills
  let accounts: Accounts
  beforeEach(() => {
    bills = new Map([['tag-1-', { input: 11, output: 3 }]])
    accounts = new Accounts(ledger, bills)
  })
  const line = (fields: object = {}) =>
    `${JSON.stringify({
      tag: 'tag-1-',
      'http.status': 200,
      'gen_ai.usage.input_tokens': 11,
      'gen_ai.usage.output_tokens': 3,
      ...fields,
    })}\n`

  it('match a line with what the client got and the vendor billed, also if it comes in pieces', () => {
    const text = line()
    accounts.read(text.slice(0, 20))
    accounts.expect('tag-1-', 200, true)
    accounts.read(text.slice(20))
    expect(accounts.matched).toBe(1)
    expect(ledger.violation).toBeUndefined()
  })

  it.each([
    ['another status', line({ 'http.status': 502 }), 'another status than 200'],
    ['another usage', line({ 'gen_ai.usage.output_tokens': 4 }), 'billed 11 and 3 tokens'],
    ['a second line', line() + line(), 'two lines'],
  ])('report %s', (_, text, problem) => {
    accounts.expect('tag-1-', 200, true)
    accounts.read(text)
    expect(ledger.violation).toMatchObject({ invariant: 'accounts', exchange: 'tag-1-' })
    expect(ledger.violation?.text).toContain(problem)
  })
})
