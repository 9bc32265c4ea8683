import { expect, it } from 'vitest'
import { alternativesOf } from './expression.ts'

/** Whether a route with the pattern of the rule matches a path, which it must match as a whole. */
function matches(pattern: string, path: string): boolean {
  const found = alternativesOf(`PathRegexp(\`${pattern}\`)`)
  if (typeof found === 'string') throw new Error(found)
  return new RegExp(`^(?:${found[0]?.path?.value})$`).test(path)
}

it.each([
  ['^/api/v[0-9]+$', ['/api/v1'], ['/x/api/v1', '/api/v1/x']],
  ['^/a', ['/a', '/ab'], ['/b/a']],
  ['b$', ['/b', '/a/b'], ['/b/a']],
  ['/b', ['/a/b/c'], ['/a']],
  ['^/a|^/b$', ['/a/x', '/b'], ['/b/x', '/x/a']],
  ['a|b', ['/xa', '/bx'], ['/c']],
  ['price\\$', ['/price$', '/price$/x'], ['/price']],
  ['c:\\\\$', ['/c:\\'], ['/c:\\x']],
])('PathRegexp %s matches the paths that Traefik finds it in', (pattern, found, others) => {
  expect(found.filter((path) => !matches(pattern, path))).toEqual([])
  expect(others.filter((path) => matches(pattern, path))).toEqual([])
})
