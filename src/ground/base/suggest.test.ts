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
    ['jwt', undefined],
    ['jwtAuth', 'jwtAuthentication'],
    ['timeoutsPerRequest', 'timeouts'],
    ['time', 'timeouts'],
  ])('for %s suggests %s', (word, meant) => expect(nearest(word, known)).toBe(meant))

  it('suggests the plural of a word, but not one of several words that begin with it', () => {
    expect(nearest('match', ['matches', 'filters'])).toBe('matches')
    expect(nearest('back', ['backend', 'backlog'])).toBeUndefined()
  })

  it.each(['mcp', 'rateLimit', '', 'x'.repeat(10_000)])('suggests nothing for %j', (word) =>
    expect(nearest(word, known)).toBeUndefined(),
  )
})
