import { expect, it } from 'vitest'
import { problemOf } from '../../../../ground/base/shape.ts'
import { shape } from './config.ts'

it('accepts the cache of a controller that knows no waiting', () => {
  const cache = { ttlMs: 1_000, scope: 'Principal' }
  expect(problemOf(shape, { requestGuards: [], responseGuards: [], cache })).toBeUndefined()
})
