import { describe, expect, it } from 'vitest'
import { nearest } from './suggest.ts'

describe('nearest', () => {
  const known = ['csrf', 'cors', 'timeouts', 'jwtAuthentication', 'tls', 'tcp']

  it.each([
    ['csfr', 'csrf'],
    ['timeout', 'timeouts'],
    ['JWTAuthentication', 'jwtAuthentication'],
    ['jwtAuthenticaton', 'jwtAuthentication'],
    ['TLS', 'tls'],
  ])('for %s suggests %s', (word, meant) => expect(nearest(word, known)).toBe(meant))

  it.each(['mcp', 'rateLimit', '', 'x'.repeat(10_000)])('suggests nothing for %j', (word) =>
    expect(nearest(word, known)).toBeUndefined(),
  )
})
