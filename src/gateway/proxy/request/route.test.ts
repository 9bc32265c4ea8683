import { describe, expect, it } from 'vitest'
import { createIoCore, NO_LISTENER, NO_ROUTE } from '../../../engines/core/index.ts'
import type { ServerExchange } from '../../../engines/http/contracts/requests.ts'
import { FieldPairs } from '../../../ground/exchange/memory-message.ts'
import { MatchableHeads } from './route.ts'

/** What matching reads of an exchange whose head a policy has edited. */
function edited(path: string, headers: [string, string][] = []): ServerExchange {
  const request = {
    method: 'GET',
    scheme: 'http',
    authority: 'A.test:8080',
    path,
    query: 'q=1',
    version: '1.1',
    headers: new FieldPairs(headers),
  }
  return { request, headIsFresh: false } as unknown as ServerExchange
}

describe('MatchableHeads', () => {
  const core = createIoCore({ memoryPages: 64 })
  const table = core.createRouteTable()
  table.addListener('a.test', 3)
  const rest = { createdAt: 0, name: 'ns/r', ruleIndex: 0, matchIndex: 0 }
  table.addRoute({ id: 1, scope: 3, path: { type: 'prefix', value: '/x' }, ...rest })
  table.addRoute({
    id: 2,
    scope: 3,
    path: { type: 'prefix', value: '/y' },
    headers: [{ name: 'x-v', type: 'exact', value: '1' }],
    query: [{ name: 'q', type: 'exact', value: '1' }],
    ...rest,
  })
  const heads = new MatchableHeads(core, core.createHead())

  it('makes the host, path, header and query of an edited head matchable', () => {
    expect(table.match(heads.current(edited('/x/y')))).toBe(1)
    expect(table.matchInScope(3, heads.written(edited('/y', [['X-V', '1']])))).toBe(2)
    expect(table.matchInScope(3, heads.written(edited('/y')))).toBe(NO_ROUTE)
    table.removeListener('a.test')
    expect(table.match(heads.current(edited('/x')))).toBe(NO_LISTENER)
  })

  it('rejects an edited head that is too large for the core', () => {
    const large = edited('/x', [['x', 'v'.repeat(300_000)]])
    expect(() => heads.written(large)).toThrow('request header fields too large')
  })
})
