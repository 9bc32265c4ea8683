import { expect, it } from 'vitest'
import type { ObjectState } from '../desired/object-state.ts'
import { certificateProblems } from './certificate-dates.ts'

const now = Date.parse('2026-06-01T00:00:00Z')

/** A Secret whose entry has certificates, each given as `first day/last day`. */
const secret = (entry: string, ...spans: string[]) => {
  const certificates = spans.map((span) => {
    const [from, to] = span.split('/')
    return { isValid: true, notBefore: `${from}T00:00:00Z`, notAfter: `${to}T00:00:00Z` }
  })
  return {
    ref: { kind: 'Secret', namespace: 'a', name: 's' },
    object: { facts: { entries: { [entry]: { certificates } } } },
  } as unknown as ObjectState
}
const messages = (state: ObjectState) =>
  certificateProblems(state, now).map(({ message }) => message)

it.each([
  ['has ended', ['2026-01-01/2026-05-01'], 'expired at 2026-05-01T00:00:00Z'],
  ['has not begun', ['2026-07-01/2027-07-01'], 'is not valid before 2026-07-01T00:00:00Z'],
  ['ends within 14 days', ['2026-01-01/2026-06-10'], 'expires at 2026-06-10T00:00:00Z'],
  ['is in the last fifth of a week', ['2026-05-26/2026-06-02'], 'expires at 2026-06-02T00:00:00Z'],
  [
    'has an authority that has ended',
    ['2026-01-01/2027-01-01', '2020-01-01/2026-05-01'],
    'expired at 2026-05-01T00:00:00Z',
  ],
])('reports a chain that %s', (_, spans, problem) => {
  expect(messages(secret('tls.crt', ...spans))).toEqual([`tls.crt ${problem}`])
})

it.each([
  ['a chain that is valid', 'tls.crt', ['2026-01-01/2027-01-01']],
  ['a new certificate of a week', 'tls.crt', ['2026-05-31/2026-06-07']],
  ['a bundle with an old authority', 'ca.crt', ['2020-01-01/2026-05-01', '2026-01-01/2036-01-01']],
])('does not report %s', (_, entry, spans) => {
  expect(messages(secret(entry, ...spans))).toEqual([])
})

it('reports a bundle of authorities that are all old', () => {
  const bundle = secret('ca.crt', '2020-01-01/2026-03-01', '2020-01-01/2026-05-01')
  expect(messages(bundle)).toEqual(['ca.crt expired at 2026-05-01T00:00:00Z'])
})
