import { describe, expect, it } from 'vitest'
import { joinAuthority, splitAuthority } from './authority.ts'

describe('splitAuthority', () => {
  it.each([
    ['a.test', { host: 'a.test' }],
    ['a.test:', { host: 'a.test' }],
    ['a.test:8080', { host: 'a.test', port: 8080 }],
    ['[::1]', { host: '::1' }],
    ['[::1]:443', { host: '::1', port: 443 }],
  ])('reads %s', (text, expected) => expect(splitAuthority(text)).toEqual(expected))

  it.each(['', ':80', 'a:0', 'a:65536', 'a:b', '::1', 'a b', 'u@a', 'a/b', '[a]', '[::1'])(
    'refuses %j',
    (text) => expect(splitAuthority(text)).toBe(undefined),
  )
})

describe('joinAuthority', () => {
  it('omits the port if it is the default of the scheme', () => {
    expect(joinAuthority('a.test', 80, 'http')).toBe('a.test')
    expect(joinAuthority('a.test', 443, 'https')).toBe('a.test')
    expect(joinAuthority('a.test', 443, 'http')).toBe('a.test:443')
    expect(joinAuthority('::1', 80, 'http')).toBe('[::1]')
  })
})
