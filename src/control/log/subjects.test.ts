import { describe, expect, it } from 'vitest'
import fc from '../../../test/support/fast-check.ts'
import { parseSubject, subjectOf } from './subjects.ts'

describe('event subjects', () => {
  it.each([
    ['HTTPRoute', 'shop', 'checkout', 'sluice.local.HTTPRoute.shop.checkout'],
    ['HTTPRoute', 'shop', 'api.example.com', 'sluice.local.HTTPRoute.shop.api%2Eexample%2Ecom'],
    ['GatewayClass', '', 'agentgateway', 'sluice.local.GatewayClass._.agentgateway'],
    ['ConfigMap', 'a', '_', 'sluice.local.ConfigMap.a.%5F'],
    ['ConfigMap', 'a', '* > \t', 'sluice.local.ConfigMap.a.%2A%20%3E%20%09'],
  ])('for %s %j/%j is %s, and parses back', (kind, namespace, name, subject) => {
    const parts = { cluster: 'local', kind, namespace, name }
    expect(subjectOf(parts)).toBe(subject)
    expect(parseSubject(subject)).toEqual(parts)
  })

  it('for any names have five NATS tokens, and parse back', () => {
    const text = fc.string({ unit: 'grapheme' })
    fc.assert(
      fc.property(text, text, text, text, (cluster, kind, namespace, name) => {
        const parts = { cluster, kind, namespace, name }
        const subject = subjectOf(parts)
        expect(subject).toMatch(/^sluice(\.[A-Za-z0-9_%-]+){4}$/)
        expect(parseSubject(subject)).toEqual(parts)
      }),
    )
  })

  it.each(['', 'sluice', 'other.a.b.c.d', 'sluice.a.b.c', 'sluice.a.b.c.d.e', 'sluice.a.b.c.%ZZ'])(
    'refuses %j',
    (subject) => expect(parseSubject(subject)).toBeUndefined(),
  )
})
