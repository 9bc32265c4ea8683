import { describe, expect, it } from 'vitest'
import { redacted } from './credential-names.ts'
import { withoutCredentials } from './redact-credentials.ts'

const transformed = (value: string, name = 'authorization') =>
  withoutCredentials({ transformation: { request: { set: [{ name, value }] } } })

describe('configuration without credentials', () => {
  it.each([
    'Authorization',
    'X-Api-Key',
    'cookie',
    'Set-Cookie',
    'x-gitlab-token',
    'PRIVATE-TOKEN',
  ])('hides the value of %s in filters and modifiers', (name) => {
    const modifier = { set: [{ name, value: 'CANARY' }], add: [{ name: 'x-a', value: 'b' }] }
    expect(withoutCredentials({ filters: [{ requestHeaderModifier: modifier }] })).toEqual({
      filters: [
        {
          requestHeaderModifier: {
            set: [{ name, value: redacted }],
            add: [{ name: 'x-a', value: 'b' }],
          },
        },
      ],
    })
  })

  it.each([
    ['"Bearer CANARY"', `"${redacted}"`],
    ["'Bearer CANARY'", `"${redacted}"`],
    ['"a\\"CANARY"', `"${redacted}"`],
    ['r"CANARY\\"', `"${redacted}"`],
    ['"""CAN"ARY"""', `"${redacted}"`],
    ['"Bearer " + request.headers["x-user"]', `"${redacted}" + request.headers["x-user"]`],
  ])('hides only the literals of the expression %s', (value, expected) => {
    expect(transformed(value)).toEqual({
      transformation: { request: { set: [{ name: 'authorization', value: expected }] } },
    })
  })

  it('keeps expressions of other headers', () => {
    expect(JSON.stringify(transformed('"plain"', 'x-a'))).toContain('plain')
  })

  it.each([
    'request.headers["x-gitlab-token"] == "CANARY"',
    "request.headers['x-api-key'] in ['CANARY', \"CANARY\"]",
    'request.headers.authorization == "CANARY"',
  ])('hides what %s compares with', (expression) => {
    const text = JSON.stringify(withoutCredentials({ matchExpressions: [expression] }))
    expect(text).not.toContain('CANARY')
    expect(text).toContain('request.headers')
  })

  it('keeps references to Secrets', () => {
    const reference = { namespace: 'a', name: 'authorization', key: 'token', digest: 'd' }
    expect(withoutCredentials({ reference }, () => true)).toEqual({ reference })
  })
})
