import { describe, expect, it } from 'vitest'
import { modifyPath } from './edit.ts'

/** The table of Gateway API's HTTPPathModifier.replacePrefixMatch. */
const prefixCases = [
  ['/foo/bar', '/foo', '/xyz', '/xyz/bar'],
  ['/foo/bar', '/foo', '/xyz/', '/xyz/bar'],
  ['/foo/bar', '/foo/', '/xyz', '/xyz/bar'],
  ['/foo/bar', '/foo/', '/xyz/', '/xyz/bar'],
  ['/foo', '/foo', '/xyz', '/xyz'],
  ['/foo/', '/foo', '/xyz', '/xyz/'],
  ['/foo/bar', '/foo', '', '/bar'],
  ['/foo/', '/foo', '', '/'],
  ['/foo', '/foo', '', '/'],
  ['/foo/', '/foo', '/', '/'],
  ['/foo', '/foo', '/', '/'],
  ['/a/b', '/', '/x', '/x/a/b'],
  ['/', '/', '/x', '/x/'],
  ['*', '/', '/x', '*'],
] as const

describe('modifyPath', () => {
  it.each(prefixCases)(
    'changes %s with prefix %s replaced by %j to %s',
    (path, prefix, value, expected) =>
      expect(modifyPath(path, { type: 'ReplacePrefixMatch', value }, prefix)).toBe(expected),
  )

  it('replaces a whole path', () =>
    expect(modifyPath('/a/b', { type: 'ReplaceFullPath', value: '/x' }, undefined)).toBe('/x'))

  it('does not replace a prefix if the path did not match as a prefix', () =>
    expect(modifyPath('/a', { type: 'ReplacePrefixMatch', value: '/x' }, undefined)).toBe(
      undefined,
    ))
})
